// Which fusions, together, make a plan wrong: halving over their numbers, then sets.
//
// Failures need not be monotone: a fusion can hide a fault, or two can be needed for one. What is
// found holds whatever the answers are: the plan of the set is wrong, and the search saw a plan
// that lacks its last fusion and is right.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ir/error.h"

namespace sinter {

/// Numbers of fusions, ascending.
using FusionSet = std::vector<int64_t>;
/// "0-3,7"; "none".
std::string to_string(const FusionSet& set);

struct FusionSearch {
  /// Whether the plans of these sets are wrong, one answer for each. A set that was asked about
  /// before costs nothing.
  std::function<Result<std::vector<bool>>(llvm::ArrayRef<FusionSet>)> wrong;
  /// The earlier fusions that built the kernels which this one joins.
  std::function<FusionSet(int64_t)> context;
  size_t at_once = 1;  // sets that are worth asking about side by side
};

/// The fusions with all that their kernels need.
FusionSet with_context(const FusionSet& fusions, const FusionSearch& search);

/// Sets whose fusions fail together and not without one another; a set lists its fusions in the
/// order in which they were found, the plan's last one first. The plan with `all` is wrong, and the
/// plan without any is right. With one guilty fusion of n it asks about ceil(log2(n)) + 2 sets
/// where it asks about one at a time.
Result<std::vector<FusionSet>> find_guilty(const FusionSet& all, const FusionSearch& search);

}  // namespace sinter
