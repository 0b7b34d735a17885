// The judge's checks that hold for kernels of every kind.
#include <cmath>

#include "ir/fault.h"
#include "ir/graph_copier.h"
#include "ir/in_place.h"
#include "ir/op_roles.h"
#include "kernels/cost.h"
#include "kernels/pointers.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {

std::optional<Verdict> constraints(const FusionState& state, ValueId a, ValueId b, Members x,
                                   Members y, bool horizontal) {
  const FusionProblem& problem = state.problem;
  const FusionOptions& options = state.options;
  const auto holds = [&](Members members, std::string_view name) {
    return llvm::any_of(members, [&](ValueId id) { return problem.name(id) == name; });
  };
  for (const auto& [first, second] : options.forbidden)
    if ((holds(x, first) && holds(y, second)) || (holds(x, second) && holds(y, first)))
      return refuse(Reason::forbidden, fmt::format("{} with {}", first, second));
  if (!state.allowed || state.allowed->contains({std::min(a, b), std::max(a, b), horizontal}))
    return std::nullopt;
  if (options.only) return refuse(Reason::stopped, "it is left out");
  return refuse(Reason::stopped, fmt::format("after {} {}", options.stop_after,
                                             options.stop_after == 1 ? "fusion" : "fusions"));
}

namespace {

/// Each thread of the kernel reads only the elements of a state that it overwrites by `writer`.
bool reads_own_elements(const FusionProblem& problem, Members members, ValueId writer) {
  const Graph& graph = problem.graph();
  const auto is_member = [&](ValueId id) { return llvm::is_contained(members, id); };
  if (llvm::any_of(problem.users(writer), is_member)) return false;
  Graph group;
  GraphCopier copy(graph, group, [&](ValueId id) {
    return op_class(graph[id]) == OpClass::leaf || (computes(graph[id]) && !is_member(id));
  });
  size_t output = 0;
  for (ValueId member : members) {
    if (!writes_state(graph[member]) && !problem.read_outside(member, members)) continue;
    if (member == writer) output = group.outputs.size();
    group.outputs.push_back(copy(member));
  }
  const Op& op = group[group.outputs[output]];
  const std::optional<uint32_t> state = input_of(group, operand_with(op, OperandRole::state));
  return state && may_overwrite(group, output, *state, problem.symbols());
}

/// A reader of the version that `writer` overwrites, or of the one that it makes.
std::optional<Verdict> conflict(const FusionProblem& problem, ValueId writer, Members readers) {
  if (!writes_state(problem.graph()[writer])) return std::nullopt;
  const ValueId version = operand_with(problem.graph()[writer], OperandRole::state);
  for (ValueId reader : readers)
    for (const Read& read : problem.facts(reader).reads)
      if (reader != writer && (read.root == version || read.root == writer))
        return refuse(
            Reason::state_version,
            fmt::format("{} reads what {} writes", problem.name(reader), problem.name(writer)));
  return std::nullopt;
}

}  // namespace

std::optional<Verdict> state_conflict(const FusionProblem& problem, Members x, Members y) {
  for (const auto& [writers, readers] : {std::pair(x, y), std::pair(y, x)})
    for (ValueId writer : writers)
      if (auto verdict = conflict(problem, writer, readers)) return verdict;
  return std::nullopt;
}

std::optional<Verdict> slower(double seconds_together, double seconds_apart) {
  if (seconds_together <= seconds_apart) return std::nullopt;
  return refuse(Reason::profit_slower, fmt::format("{:.2f} µs together, {:.2f} µs apart",
                                                   seconds_together * 1e6, seconds_apart * 1e6));
}

std::optional<Verdict> stays_alone(const Question& q) {
  for (uint32_t group : {q.first, q.second}) {
    const GroupShape& shape = q.groups.shape(group);
    const std::string& name = q.problem.name(q.groups.members(group)[0]);
    if (shape.lone) return refuse(Reason::space_reduction, name);
    if (!shape.closed()) continue;
    const bool is_call = shape.family->kind == KernelFamily::Kind::call;
    return refuse(is_call ? Reason::port_of_call : Reason::port_closed, name);
  }
  return std::nullopt;
}

std::optional<Verdict> checks::state(Question& q) {
  for (ValueId writer : q.members)
    if (auto verdict = conflict(q.problem, writer, q.members);
        verdict && !reads_own_elements(q.problem, q.members, writer))
      return verdict;
  return std::nullopt;
}

std::optional<Verdict> checks::convexity(Question& q) {
  if (fault(Fault::skipped_convexity) || !q.groups.dag().path_outside(q.first, q.second))
    return std::nullopt;
  return refuse(Reason::convexity_path, "");
}

std::optional<Verdict> checks::profit(Question& q) {
  const auto together = kernel_cost(q.problem, q.members, q.merged);
  const size_t held = pointers(q.problem, q.members);
  if (!together || q.members.size() > kMaxOps || held > kMaxPointers)
    return refuse(Reason::profit_configuration,
                  fmt::format("{} ops, {} pointers", q.members.size(), held));
  double apart = 0;
  for (uint32_t group : {q.first, q.second}) {
    const auto alone = kernel_cost(q.problem, q.groups.members(group), q.groups.shape(group));
    apart += alone ? alone->seconds : INFINITY;
  }
  return slower(together->seconds, apart);
}

}  // namespace sinter
