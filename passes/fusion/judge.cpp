#include "passes/fusion/judge.h"

#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

// A question is answered by a list of checks: the first one that refuses gives the reason.

constexpr Check* kRowChecks[] = {checks::space, checks::port, checks::state, checks::convexity,
                                 checks::profit};

constexpr Check* kColumnChecks[] = {checks::column_space, checks::column_port, checks::state,
                                    checks::convexity, checks::profit};

// Convexity first: a path forbids whatever else the groups are fused with.
constexpr Check* kAnchoredChecks[] = {checks::convexity, checks::anchored_space, checks::prologue,
                                      checks::epilogue,  checks::state,          checks::profit};

// Without profit: a call that does more is a launch and a value in memory less.
constexpr Check* kCallChecks[] = {checks::call, checks::state, checks::convexity, checks::numerics};

llvm::ArrayRef<Check*> checks_for(const Question& q) {
  if (q.call) return kCallChecks;
  if (has_side_results(q.problem, q.first_shape()) || has_side_results(q.problem, q.second_shape()))
    return kAnchoredChecks;
  if (q.first_shape().columns || q.second_shape().columns) return kColumnChecks;
  if (q.first_shape().anchor || q.second_shape().anchor) return kAnchoredChecks;
  return kRowChecks;
}

Question question(const FusionProblem& problem, const Groups& groups, ValueId a, ValueId b) {
  Question q{problem, groups, a, b, groups.find(a), groups.find(b), {}, {}, {}, {}, {}, {}};
  SINTER_CHECK(q.first != q.second, "{} and {} share a kernel already", problem.name(a),
               problem.name(b));
  if (groups.dag().position(q.first) > groups.dag().position(q.second)) {
    std::swap(q.a, q.b);
    std::swap(q.first, q.second);
  }
  for (uint32_t group : {q.first, q.second}) llvm::append_range(q.members, groups.members(group));
  llvm::sort(q.members);
  q.call = library_call(q);
  return q;
}

/// Blocks compute the whole prologue, each for itself; what enters by an element port is computed
/// where it is read.
bool repeats_prologue(const Question& q) {
  return q.prologue.size() > 1 + q.merged.companions.size() &&
         llvm::any_of(q.problem.ports(*q.merged.anchor).operands, [](const Ports::Place& place) {
           return is_open(place.port) && place.port != Port::element;
         });
}

Verdict acceptance(const Question& q) {
  Verdict verdict;
  if (repeats_prologue(q))
    verdict.detail =
        fmt::format("the prologue of {} is computed by each of its blocks, at most {}",
                    q.problem.name(*q.merged.anchor), q.problem.device().multiprocessors);
  return verdict;
}

}  // namespace

Decision judge(const FusionState& state, ValueId a, ValueId b) {
  Question q = question(state.problem, state.groups, a, b);
  const auto decide = [&](Verdict verdict) {
    return Decision{std::move(verdict), q.first, q.second, std::move(q.merged),
                    state.groups.merges()};
  };
  if (auto refusal = constraints(state, a, b, state.groups.members(q.first),
                                 state.groups.members(q.second), false))
    return decide(std::move(*refusal));
  for (Check* check : checks_for(q))
    if (auto refusal = check(q)) return decide(std::move(*refusal));
  return decide(acceptance(q));
}

void add_witness(const Groups& groups, ValueId a, ValueId b, Verdict& verdict) {
  if (verdict.reason != Reason::convexity_path) return;
  const QuotientDag& dag = groups.dag();
  if (dag.position(dag.find(a)) > dag.position(dag.find(b))) std::swap(a, b);
  verdict.path = dag.witness(a, b);
}

}  // namespace sinter
