// Fused against unfused on several ranks, and the sums of all ranks beside one another.
#pragma once

#include "driver/verify/verify.h"

namespace sinter {

/// Of a module; `options.ranks` is more than 1.
Result<DTypeReport> verify_ranks(const std::string& path, const VerifyOptions& options);

}  // namespace sinter
