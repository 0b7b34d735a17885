// The options of the fusion engine that its caller may set.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/numerics.h"

namespace sinter {

struct FusionOptions {
  bool enabled = true;  // false: every op is a kernel of its own
  /// Pairs of value names. required: tried first. forbidden: never in one kernel.
  std::vector<std::pair<std::string, std::string>> required, forbidden;
  int64_t stop_after = -1;  // acceptances; -1: no limit
  /// fast: an activation or a residual may join the library call of a linear.
  Numerics numerics = Numerics::strict;
};

}  // namespace sinter
