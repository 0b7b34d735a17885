// Which of an entry's fusions brought two ops together.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "passes/fusion/fusion_costs.h"

namespace sinter {

/// The fusions as a tree: the leaves are ops, and a fusion's parent is the next one of its kernel.
class MergeTree {
 public:
  MergeTree() = default;
  /// In the order in which they were made.
  explicit MergeTree(const std::vector<GroupMerge>& merges);

  /// The fusion of which one side has `a` and the other `b`; nullopt: no kernel computes both.
  std::optional<size_t> joining(ValueId a, ValueId b) const;

 private:
  std::unordered_map<uint32_t, size_t> of_op_;  // the first fusion of an op
  std::vector<std::optional<size_t>> parent_;   // of a fusion
};

}  // namespace sinter
