// The checks that the judge's lists are made of (judge.cpp), and what they share.
#pragma once

#include "kernels/family.h"
#include "passes/fusion/fusion_state.h"

namespace sinter {

/// Two groups, and what the checks find out about the kernel that they would make.
struct Question {
  const FusionProblem& problem;
  const Groups& groups;
  ValueId a, b;            // the ops that the question is about; a's group runs first
  uint32_t first, second;  // groups
  llvm::SmallVector<ValueId, 8> members;  // of both, ascending
  std::optional<ValueId> call;            // the anchor of the call that would compute both
  GroupShape merged;
  // Around an anchor: the members that it depends on, it and its companions; its side results; the
  // other members.
  llvm::SmallVector<ValueId, 8> prologue, side_results, epilogue;

  const GroupShape& first_shape() const { return groups.shape(first); }
  const GroupShape& second_shape() const { return groups.shape(second); }
  /// The merged kernel, as its family is asked about it.
  GroupView view() const { return {problem, members, merged, prologue, epilogue}; }
};

/// A check refuses, or completes what the question knows of the merged kernel.
using Check = std::optional<Verdict>(Question& question);

namespace checks {

// Checks of all kernels (judge_general.cpp).
/// Nobody in the kernel reads a state that it writes, but for the elements that the same thread
/// overwrites.
Check state;
/// No path leaves the kernel and comes back.
Check convexity;
/// A configuration exists, and the kernel is no slower than its groups apart.
Check profit;

// Checks of kernels of rows.
/// The leading axes that make a row agree (judge_space.cpp).
Check space;
/// Every read between members lands where the reading thread sees it (judge_ports.cpp). Shortens
/// the rows where that helps.
Check port;

// Checks of kernels of columns (judge_columns.cpp).
/// One space of columns; beside it what has an element for each of its own, or for each result.
Check column_space;
/// Every read between members lands on the reader's own element.
Check column_port;

// Checks of kernels around an anchor (judge_anchor.cpp).
/// One anchor with its companions, and rows that agree with its ports' rows.
Check anchored_space;
/// The members that an operand depends on can be computed where the port lets them.
Check prologue;
/// The members that take the result can be computed beside it.
Check epilogue;

// Checks of library calls (judge_call.cpp).
/// The merged group keeps the shape of the call's anchor. Refuses nothing: Question::call says that
/// there is such a call.
Check call;
/// The call rounds once: strict numerics forbid it.
Check numerics;

}  // namespace checks

// Checks of any sets of ops.
/// Refuses what the caller forbids or leaves out. `a` and `b`: the ops that the question is about.
std::optional<Verdict> constraints(const FusionState& state, ValueId a, ValueId b, Members x,
                                   Members y, bool horizontal);
/// Refuses where one writes a state that the other reads.
std::optional<Verdict> state_conflict(const FusionProblem& problem, Members x, Members y);
/// Refuses a kernel that takes longer than its groups apart.
std::optional<Verdict> slower(double seconds_together, double seconds_apart);

// Parts of several checks.
/// Refuses that `reader` takes `value`.
inline Verdict refuse(const FusionProblem& problem, Reason reason, ValueId reader, ValueId value) {
  return refuse(reason, fmt::format("{} of {}", problem.name(reader), problem.name(value)));
}
/// Refuses a group that no neighbour can join.
std::optional<Verdict> stays_alone(const Question& question);
/// The kernel of a group of this shape stores side results.
bool has_side_results(const FusionProblem& problem, const GroupShape& shape);
/// The merged kernel stores the member as a side result, or it is the cast before one.
bool is_side_result(const Question& question, ValueId member);
/// Refuses a read of an op that the kernel completes when it ends.
std::optional<Verdict> reads_side_result(const FusionProblem& problem, ValueId reader,
                                         ValueId root);
/// Refuses a read between members of a kernel of this shape that does not land where the reading
/// thread sees it.
std::optional<Verdict> read_fits(const FusionProblem& problem, const GroupShape& shape,
                                 ValueId reader, const Read& read);
/// Refuses where a value that is read at another element depends on another such value.
std::optional<Verdict> recomputed_once(const FusionProblem& problem, const GroupShape& shape,
                                       Members members);
/// The anchor of the library call that would compute both groups of the question.
std::optional<ValueId> library_call(const Question& question);

}  // namespace sinter
