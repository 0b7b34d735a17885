// The results of `verify`, for people and programs.
#pragma once

#include "driver/verify/verify.h"

namespace sinter {

std::string verify_text(const VerifyReport& report);
/// One object: passed, dtypes: [{dtype, bitwise, difference, values, elements, calls, launches,
/// rounded_matrices, float64, reference, tokens, tokens_match}]; of fast numerics bounds: [{value,
/// rms, mean_max, max, ulp, holds}] instead of bitwise and difference.
std::string verify_json(const VerifyReport& report);

}  // namespace sinter
