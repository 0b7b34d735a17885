// What a group of ops needs of a kernel.
#pragma once

#include "ir/column_space.h"
#include "passes/fusion_problem.h"

namespace sinter {

/// Derived from a group's members, kept per group.
struct GroupShape {
  Dims prefix;                         // the leading axes that every member shares
  std::optional<uint32_t> row_prefix;  // how many of them make a row, where a reduction fixes it
  bool closed = false;
  std::optional<ValueId> anchor;       // the matvec that the kernel is built around
  int64_t classes = 0;                 // of its rows, that its blocks are dealt
  std::optional<ColumnSpace> columns;  // of its column reductions
  bool lone = false;    // reduces over axes that are neither trailing nor columns: a kernel alone
  uint32_t rows = 0;    // leading axes that make a row of the kernel
  int64_t reduced = 0;  // elements of the longest reduction, upper bound
};

/// The shape of a kernel that computes one op.
GroupShape shape_of(const FusionProblem& problem, ValueId id);

/// Leading axes that make a row of `members`, where `shape` is known but for its rows.
uint32_t row_axes(const FusionProblem& problem, Members members, const GroupShape& shape);

}  // namespace sinter
