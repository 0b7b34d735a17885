// A group of ops, as a kernel family is asked about it.
#pragma once

#include "kernels/fusion_problem.h"

namespace sinter {

/// The requirements of a group on its kernel; derived from its members, kept per group.
struct GroupShape {
  Dims prefix;                         // the leading axes that every member shares
  std::optional<uint32_t> row_prefix;  // how many of them make a row, where a reduction fixes it
  uint32_t rows = 0;                   // leading axes that make a row of the kernel
  int64_t reduced = 0;                 // elements of the longest reduction, upper bound
  std::optional<ColumnSpace> columns;  // of its column reductions
  bool lone = false;  // reduces over axes that are neither trailing nor columns: a kernel alone
  const KernelFamily* family = nullptr;  // that makes the kernel
  /// The op that the kernel is built around; absent: the kernel has none, or neighbours cannot join
  /// it.
  std::optional<ValueId> anchor;
  llvm::SmallVector<ValueId, 1>
      companions;          // other results of the same kernel, beside the anchor's
  int64_t max_blocks = 0;  // anchored: among which the result can be divided

  bool closed() const;  // neighbours cannot join
};

/// A set of ops that a family is asked about.
struct GroupView {
  const FusionProblem& problem;
  Members members;  // ascending
  const GroupShape& shape;
  /// Around an anchor: the members that it depends on, it and its companions; the other members.
  Members prologue = {}, epilogue = {};

  /// The member that the kernel is built around, whether or not neighbours can join it; for a
  /// family that has anchors.
  ValueId anchor() const;
};

/// Refuses a member of the epilogue that neither takes the anchor's result nor helps those that do:
/// it would only wait for the anchor.
std::optional<Verdict> needs_no_result(const GroupView& group);

}  // namespace sinter
