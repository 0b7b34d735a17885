// What `verify` found, for people and programs.
#pragma once

#include "driver/verify.h"

namespace sinter {

std::string verify_text(const VerifyReport& report);
/// One object: passed, dtypes: [{dtype, passed, difference, values, elements, calls, launches,
/// float64, reference, tokens, tokens_match}].
std::string verify_json(const VerifyReport& report);

}  // namespace sinter
