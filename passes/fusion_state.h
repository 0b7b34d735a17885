// Groups while they grow, and the judge that every question about them goes to.
#pragma once

#include "device/schedule.h"
#include "ir/op_facts.h"
#include "passes/fusion.h"
#include "passes/quotient_dag.h"

namespace sinter {

/// What a group of ops needs of a kernel; derived from its members, kept per group.
struct GroupShape {
  Dims prefix;                         // the leading axes that every member shares
  std::optional<uint32_t> row_prefix;  // how many of them make a row, where a reduction fixes it
  bool closed = false;
  std::optional<ValueId> anchor;  // the matvec that the kernel is built around
  int64_t classes = 0;            // of its rows, that its blocks are dealt
  bool lone = false;              // reduces over axes that are not trailing: a kernel alone
  uint32_t rows = 0;              // leading axes that make a row of the kernel
  int64_t reduced = 0;            // elements of the longest reduction, upper bound
};

class FusionState {
 public:
  FusionState(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
              const FusionOptions& options);

  /// May the groups of ops `a` and `b` share a kernel? Asks in order: space, port, state,
  /// convexity, profit.
  Verdict judge(ValueId a, ValueId b) const;
  /// Gives a refusal for convexity its path. Apart from judge, which asks often and needs none.
  void add_witness(ValueId a, ValueId b, Verdict& verdict) const;
  /// Joins the groups of two ops; the verdict must have been `fused`.
  void merge(ValueId a, ValueId b);

  const Graph& graph() const { return graph_; }
  const OpFacts& facts(ValueId id) const { return facts_[id.index]; }
  const QuotientDag& dag() const { return dag_; }
  const std::vector<llvm::SmallVector<ValueId, 2>>& users() const { return users_; }
  Grouping grouping() const;
  std::string name(ValueId id) const { return graph_[id].name; }
  double bytes(ValueId id) const;
  const GroupShape& shape(uint32_t group) const { return shapes_[group]; }

  // Parts of the judge that ask about any sets of ops.
  using Members = llvm::ArrayRef<ValueId>;
  /// Refuses what the caller forbids.
  std::optional<Verdict> constraints(Members x, Members y) const;
  /// Refuses where one writes a state that the other reads.
  std::optional<Verdict> states(Members x, Members y) const;
  /// Bytes that a kernel of these ops moves.
  double traffic(Members members) const;
  /// Pointers that a kernel of these ops holds, and how many it can.
  size_t pointers(Members members) const;
  static constexpr size_t kMostPointers = 64;  // parameters are 4 KiB, and registers hold addresses
  /// Blocks of a kernel of at least `least_threads` each. nullopt: no configuration fits.
  struct Blocks {
    double count;
    RowConfig config;
  };
  std::optional<Blocks> blocks(Members members, const GroupShape& shape,
                               int64_t least_threads = 1) const;
  /// Time of a launch of so many blocks that moves so many bytes.
  double seconds(double blocks, double bytes) const;

  int64_t accepted = 0;

 private:
  struct Question;
  Question question(ValueId a, ValueId b) const;
  std::optional<Verdict> space(Question& q) const;
  /// The members are a linear and what its library call can do beside it (judge_product.cpp).
  bool join_product(Question& q, Members members) const;
  /// Space and ports of a kernel around a matvec (judge_anchor.cpp).
  std::optional<Verdict> around_anchor(Question& q) const;
  /// The members that `last` depends on, and it; ascending.
  llvm::SmallVector<ValueId, 8> up_to(ValueId last, llvm::ArrayRef<ValueId> members) const;
  double anchored_seconds(llvm::ArrayRef<ValueId> members, const GroupShape& shape) const;
  std::optional<Verdict> in_front(const Question& q) const;
  std::optional<Verdict> behind(Question& q, llvm::ArrayRef<ValueId> members) const;
  std::optional<Verdict> results_behind(const Question& q, llvm::ArrayRef<ValueId> members) const;
  /// Shortens the merged kernel's rows until every read between members fits.
  std::optional<Verdict> cut_rows(Question& q) const;
  std::optional<Verdict> ports(const Question& q) const;
  std::optional<Verdict> read_fits(const Question& q, ValueId reader, const Read& read) const;
  /// What a read meets in the merged group's rows.
  enum class Place : uint8_t { own_element, own_row, elsewhere };
  Place place_of(const Question& q, const Read& read) const;
  /// No value that is read at another element depends on another such value.
  std::optional<Verdict> recomputed_once(const Question& q) const;
  std::optional<Verdict> profit(const Question& q) const;
  double seconds(Members members, const GroupShape& shape) const;
  RowProblem row_problem(llvm::ArrayRef<ValueId> members, const GroupShape& shape) const;
  uint32_t row_axes(llvm::ArrayRef<ValueId> members, const GroupShape& shape) const;
  std::string show(DimsRef dims) const;

  Graph graph_;  // a copy: verdicts are asked for after the caller's graph is gone
  std::vector<Symbol> symbols_;
  DeviceDescription device_;
  FusionOptions options_;
  std::vector<OpFacts> facts_;
  std::vector<llvm::SmallVector<ValueId, 2>>
      users_;  // computing ops that read a value, through views
  std::vector<bool> is_output_;
  std::vector<GroupShape> shapes_;  // by representative
  QuotientDag dag_;
};

/// Two groups, what they would be together, and the ops that the question is about.
struct FusionState::Question {
  ValueId a, b;     // a's group comes first
  uint32_t ga, gb;  // groups
  GroupShape merged;
  llvm::SmallVector<ValueId, 8> members;  // of both groups, ascending
};

/// A refusal without a path.
inline Verdict refuse(Reason reason, std::string detail) {
  return {reason, std::move(detail), {}, 0};
}

}  // namespace sinter
