// Horizontal fusion: kernels of different rows side by side in one launch, when no more can share
// their rows.
//
//   %q = rms_norm %x, %w : f32[N, 32, 128]      blocks 0 to c - 1 of a kernel
//   %k = rms_norm %y, %v : f32[N, 8, 128]   =>  blocks from c on
//
// Parts hand no element to each other: neither may depend on the other. What is saved is the
// launch, and time where neither has blocks enough to fill the device.
//
// Two kernels are asked about where both read one value, so that they can run at about the same
// time, or where both stand at the beginning of the entry: they and all kernels before them read
// arguments and small values, as the kernels of an optimizer's step do. When such a kernel runs
// makes no difference to the memory of intermediate values. Kernels of one level, the number of
// kernels on the longest way to them, do not depend on each other, whichever of them are joined.
#pragma once

#include <map>

#include "passes/fusion/fusion_state.h"

namespace sinter {

class HorizontalFusion {
 public:
  /// `state`: the engine when no candidate is left; it stays as it is and outlives this.
  explicit HorizontalFusion(const FusionState& state);

  /// May the kernels of ops `a` and `b` be parts of one? Absent: the question does not arise, since
  /// they read nothing in common but weights, one depends on the other, they are one already, or
  /// one of them has no fusion port.
  std::optional<Decision> judge(ValueId a, ValueId b) const;
  /// The same of kernels that need not read anything in common.
  std::optional<Decision> judge_independent(ValueId a, ValueId b) const;
  /// The kernels at the beginning of the entry, by level: the first op of each, ascending.
  std::vector<std::vector<ValueId>> beginnings() const;
  /// True if the ops are in one kernel.
  bool together(ValueId a, ValueId b) const { return dag_.find(a) == dag_.find(b); }
  /// Joins the kernels of an accepted decision, the last one made: nothing has merged since.
  void merge(const Decision& decision);
  /// The state's grouping, with parts.
  Grouping grouping() const;

 private:
  bool share_a_value(ValueId a, ValueId b) const;
  bool has_rows(uint32_t kernel) const;
  bool reduces(uint32_t kernel) const;
  /// The level of a kernel at the beginning of the entry, given the levels of the kernels before
  /// it.
  std::optional<size_t> level(uint32_t kernel, const std::map<uint32_t, size_t>& before) const;
  /// most_ops: of both kernels. What shares a value is asked in pairs, which takes time by the
  /// parts that they have already.
  std::optional<Decision> judge(ValueId a, ValueId b, size_t most_ops) const;
  std::optional<Verdict> profit(uint32_t x, uint32_t y, size_t most_ops) const;
  double seconds(llvm::ArrayRef<uint32_t> parts) const;

  const FusionState& state_;
  QuotientDag dag_;  // of kernels
  int64_t merges_ = 0;
  std::vector<llvm::SmallVector<uint32_t, 1>> parts_;  // groups of the state, by representative
};

}  // namespace sinter
