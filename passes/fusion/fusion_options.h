// The options of the fusion engine that its caller may set.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ir/numerics.h"

namespace sinter {

struct FusionOptions {
  bool enabled = true;  // false: every op is a kernel of its own
  /// Pairs of value names. required: tried first. forbidden: never in one kernel.
  std::vector<std::pair<std::string, std::string>> required, forbidden;
  /// The engine numbers the fusions that it would make, in their order, from `first_number` on. It
  /// makes the fusions in `only`, and only among the first `stop_after` of the graph; a fusion that
  /// needs one that is left out is not made.
  int64_t stop_after = -1;                   // -1: no limit
  std::optional<std::vector<int64_t>> only;  // ascending; none: all
  int64_t first_number = 0;
  /// fast: an activation or a residual may join the library call of a linear.
  Numerics numerics = Numerics::strict;
};

}  // namespace sinter
