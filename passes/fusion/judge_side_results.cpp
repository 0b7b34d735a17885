// The judge's questions about side results (ir/side_results.h): the members of a kernel around an
// anchor that it stores without a port, and the reads of such members.
#include "ir/op_roles.h"
#include "passes/fusion/judge_checks.h"

namespace sinter {
namespace {

std::optional<SideResult> stored_by(const FusionProblem& problem, const GroupShape& shape,
                                    SideKind kind) {
  if (!shape.anchor || !shape.family->side_result) return std::nullopt;
  return shape.family->side_result(problem.graph(), problem.graph()[*shape.anchor], kind);
}

/// The kernel has the elements of `source` as its family stores them.
bool has_elements(const Question& q, const SideResult& stored, ValueId source) {
  const Graph& graph = q.problem.graph();
  const ValueId anchor = *q.merged.anchor;
  if (!stored.of_epilogue)
    return source == anchor || llvm::is_contained(q.merged.companions, source);
  return graph[source].type.dims == graph[anchor].type.dims &&
         llvm::is_contained(q.members, source) &&
         (source == anchor || !llvm::is_contained(q.prologue, source));
}

/// The kernel stores `id` as a side result of this kind. It stores one of a value, or, of values of
/// the epilogue, one in all.
bool stores(const Question& q, SideKind kind, ValueId id) {
  const Graph& graph = q.problem.graph();
  const auto stored = stored_by(q.problem, q.merged, kind);
  const auto op = stored ? as_side_result(kind, graph, id) : std::nullopt;
  if (!op || op->size != stored->size || !has_elements(q, *stored, op->source)) return false;
  const auto is_second = [&](ValueId other) {
    const auto second = other == id ? std::nullopt : as_side_result(kind, graph, other);
    return second && (stored->of_epilogue || second->source == op->source);
  };
  return llvm::none_of(q.members, is_second) && llvm::is_contained(q.members, op->own) &&
         !q.problem.is_output(op->own) && llvm::all_of(q.problem.users(op->own), [&](ValueId user) {
           return user == id || (llvm::is_contained(q.members, user) && is_side_result(q, user));
         });
}

}  // namespace

bool has_side_results(const FusionProblem& problem, const GroupShape& shape) {
  return llvm::any_of(kSideKinds,
                      [&](SideKind kind) { return stored_by(problem, shape, kind).has_value(); });
}

bool is_side_result(const Question& q, ValueId member) {
  ValueId id = member;
  if (q.problem.graph()[member].kind == OpKind::cast) {
    const Members users = q.problem.users(member);
    if (users.size() != 1 || !llvm::is_contained(q.members, users[0])) return false;
    id = users[0];
  }
  return llvm::any_of(kSideKinds, [&](SideKind kind) { return stores(q, kind, id); });
}

std::optional<Verdict> reads_side_result(const FusionProblem& problem, ValueId reader,
                                         ValueId root) {
  const Graph& graph = problem.graph();
  if (as_column_runs(graph, root)) return refuse(Reason::space_reduction, problem.name(root));
  if (places_part(graph[root]) && !places_part(graph[reader]))
    return refuse(problem, Reason::port_other_element, reader, root);
  return std::nullopt;
}

}  // namespace sinter
