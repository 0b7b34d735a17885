// The judge's answer about two groups, and all that merging them takes.
#pragma once

#include "ir/verdict.h"
#include "passes/fusion/group_shape.h"

namespace sinter {

struct Decision {
  Verdict verdict;
  uint32_t first = 0, second = 0;  // the groups, in the order in which they run
  GroupShape merged;               // accepted: what they need of a kernel together
  /// Merges done when the question was asked. A later merge changes groups, and may open a path
  /// between two groups that it leaves alone: the decision then holds no longer.
  int64_t merges = 0;

  bool accepted() const { return verdict.accepted(); }
};

}  // namespace sinter
