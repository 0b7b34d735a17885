// The graph's ops contracted into groups, kept in a topological order under merging.
#pragma once

#include <optional>
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

  /// Whether the edges lead from `from` to `to`; `direct`: an edge between the two counts too.
  /// unknown: it takes more edges than the budget. `reached`: asks for the groups
  /// between the positions of the two that they lead to instead.
  Reach reach(uint32_t from, uint32_t to, const Edges& edges, bool direct, size_t budget,
              std::vector<uint32_t>* reached = nullptr) const;
  bool path(uint32_t a, uint32_t b, bool direct) const;
  /// The groups between the positions of `from` and `to` that the edges lead to from `from`,
  /// in order.
  std::vector<uint32_t> between(uint32_t from, uint32_t to, const Edges& edges) const;

  /// From where to where a witness leads (quotient_dag.cpp).
  struct PathQuestion;
  using Path = std::vector<ValueId>;
  Path search(llvm::ArrayRef<ValueId> from, llvm::ArrayRef<ValueId> to, bool through_groups) const;
  // Empty: there is no such path. nullopt: it takes more edges than the budget.
  std::optional<Path> search_forward(const PathQuestion& question, size_t budget) const;
  std::optional<Path> search_backward(const PathQuestion& question, size_t budget) const;
  /// The path of so many edges, when search_backward has found the ways from all states on it.
  Path follow(const PathQuestion& question, uint32_t edges) const;
  /// How an op follows another on a path.
  enum class Tie : uint8_t { edge, group };
  /// The way from a state to the path's end; of two the better one is less.
  struct Onward {
    uint32_t edges;
    Tie tie;
    ValueId next;
    friend auto operator<=>(const Onward&, const Onward&) = default;
  };
  /// The ops to which the edges lead from `op` on the question's paths, in order, until `visit`
  /// returns true.
  template <typename Visit>
  void for_each_neighbour(const PathQuestion& question, ValueId op, const Edges& edges,
                          Visit visit) const;

  Edges op_successors_, op_predecessors_;
  mutable std::vector<uint32_t> parent_;
  std::vector<llvm::SmallVector<ValueId, 4>> members_;
  std::vector<uint32_t> position_;
  mutable std::vector<uint32_t> mark_, visited_;  // the epoch of the last visit; by group, by state
  mutable std::vector<Onward> onward_;            // by state, of those visited backward
  mutable uint32_t epoch_ = 0;
};

}  // namespace sinter
