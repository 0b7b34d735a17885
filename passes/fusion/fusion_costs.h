// The cost of a finished fusion and the savings of each of its merges, at chosen sizes.
#pragma once

#include "kernels/cost.h"
#include "passes/fusion/fusion.h"

namespace sinter {

/// A fusion that the engine made: the groups of two ops became one kernel.
struct GroupMerge {
  size_t decision = 0;         // in Fusion::ledger
  std::vector<ValueId> first;  // members of the group of the decision's `a`, before the merge
  std::vector<ValueId> second;
  /// Memory traffic of the two groups minus the merged group's. The sum over all merges is the
  /// unfused graph's traffic minus the fused graph's.
  double saved_bytes = 0;
};

class FusionCosts {
 public:
  /// `sizes`: a value for each symbol, in its range. `board`: whose rates give the times; null: the
  /// device's for which fusion decided.
  FusionCosts(const Fusion& fusion, llvm::ArrayRef<int64_t> sizes,
              const DeviceDescription* board = nullptr);

  /// The traffic of a group of the fusion's grouping: an element that several ops of the kernel
  /// read is read once.
  Bytes bytes(const Group& group) const { return problem_.traffic(group.members); }
  /// The bytes that the kernel reads of each value in memory.
  llvm::SmallVector<std::pair<ValueId, double>, 4> reads(const Group& group) const {
    return problem_.reads(group.members);
  }
  /// The cost model's time of the kernel or the library call, its launch included.
  double seconds(const Group& group) const;
  /// The time of all groups, one after the other.
  double seconds() const;
  /// All fusions, in the order in which they were made.
  std::vector<GroupMerge> merges() const;

  const FusionProblem& problem() const { return problem_; }
  /// The group's parts with the shapes that the engine gave them; without parts, the group.
  std::vector<PartView> parts(const Group& group) const;

 private:
  const Fusion& fusion_;
  FusionProblem problem_;  // at the sizes
};

}  // namespace sinter
