// The graph's ops contracted into groups, kept in a topological order under merging.
#pragma once

#include <vector>

#include "ir/grouping.h"

namespace sinter {

/// Nodes are groups, named by one of their ops; edges are data (through views) and state: who reads
/// a version of a state comes before who writes the next. Merging keeps it acyclic; the order is
/// repaired only between the two positions (Pearce and Kelly, "A dynamic topological sort algorithm
/// for directed acyclic graphs", 2006), so that a merge costs what lies between.
class QuotientDag {
 public:
  /// Every computing op is a group of its own.
  explicit QuotientDag(const Graph& graph);

  /// The group that holds op `id`, as a representative.
  uint32_t find(ValueId id) const;
  llvm::ArrayRef<ValueId> members(uint32_t group) const { return members_[group]; }
  uint32_t position(uint32_t group) const { return position_[group]; }

  /// True if a path leads from `a` (earlier) to `b` through a third group.
  bool path_outside(uint32_t a, uint32_t b) const;
  /// True if any path leads from one to the other, whichever comes first.
  bool depends(uint32_t a, uint32_t b) const;
  /// A shortest such path, op by op, from op `from` of the earlier group to op `to` of the later
  /// one if there is one that begins and ends there, else between any of their ops; where no data
  /// leads from op to op all the way, ops of one group follow each other too. Ties go to the op
  /// that comes first.
  std::vector<ValueId> witness(ValueId from, ValueId to) const;

  /// Joins two groups between which no path leads outside; returns the representative.
  uint32_t merge(uint32_t a, uint32_t b);

 private:
  using Edges = std::vector<llvm::SmallVector<ValueId, 2>>;  // of ops, ascending
  enum class Reach : uint8_t { nothing, target, unknown };

  /// Collects (and marks with the epoch) the groups between the positions of `from` and `to` that
  /// the edges lead to from `from`. target: one of them leads to `to`; unknown: more edges than the
  /// budget. `found` null: returns at the first way to `to`.
  Reach reach(uint32_t from, uint32_t to, const Edges& edges, size_t budget,
              std::vector<uint32_t>* found) const;
  std::vector<ValueId> search(llvm::ArrayRef<ValueId> from, llvm::ArrayRef<ValueId> to,
                              bool through_groups) const;

  Edges op_successors_, op_predecessors_;
  mutable std::vector<uint32_t> parent_;
  std::vector<llvm::SmallVector<ValueId, 4>> members_;
  std::vector<uint32_t> position_;
  mutable std::vector<uint32_t> mark_, visited_;  // the epoch of the last visit; by group, by state
  mutable uint32_t epoch_ = 0;
};

}  // namespace sinter
