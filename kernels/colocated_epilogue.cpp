#include "kernels/colocated_epilogue.h"

#include "ir/graph_copier.h"
#include "ir/grouping.h"
#include "ir/op_roles.h"

namespace sinter {
namespace {

Verdict other_block(const GroupView& group, ValueId reader, ValueId root) {
  return refuse(Reason::anchor_other_block,
                fmt::format("{} of {}", group.problem.name(reader), group.problem.name(root)));
}

/// The results of the kernel's epilogue as a graph that computes each from the sums, its first
/// value; and the members that its outputs are.
struct Results {
  Graph graph;
  ValueId sums;
  llvm::SmallVector<ValueId, 8> leaving;
};

Results results_of(const GroupView& group) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const ValueId anchor = group.anchor();
  Results results;
  GraphCopier copy(graph, results.graph, [&](ValueId id) {
    return computes(graph[id]) ? !llvm::is_contained(group.epilogue, id)
                               : op_class(graph[id]) == OpClass::leaf;
  });
  results.sums = copy(anchor);
  for (ValueId member : group.epilogue)
    if (writes_state(graph[member]) || problem.read_outside(member, group.members)) {
      results.leaving.push_back(member);
      results.graph.outputs.push_back(copy(member));
    }
  return results;
}

/// The kernel's text is made from its results (kernels/common/sums_epilogue.h): the same question
/// as there.
std::optional<Verdict> results_fit(const GroupView& group, uint32_t row_axes) {
  const Results results = results_of(group);
  const auto deal = colocated_rows(results.graph, results.sums, group.problem.symbols(), row_axes);
  const auto* stranger = std::get_if<NotColocated>(&deal);
  if (!stranger) return std::nullopt;
  const auto at =
      llvm::find(results.graph.outputs, stranger->reader) - results.graph.outputs.begin();
  return other_block(group, results.leaving[at], group.anchor());
}

}  // namespace

std::variant<ColocatedRows, Verdict> colocated_epilogue(const GroupView& group, uint32_t row_axes) {
  const FusionProblem& problem = group.problem;
  auto deal = colocated_rows(
      problem.graph(), group.anchor(), group.epilogue,
      [&](ValueId id) -> const OpFacts& { return problem.facts(id); }, row_axes);
  if (const auto* stranger = std::get_if<NotColocated>(&deal))
    return other_block(group, stranger->reader, stranger->root);
  if (auto refusal = results_fit(group, row_axes)) return *std::move(refusal);
  if (auto refusal = needs_no_result(group)) return *std::move(refusal);
  return std::get<ColocatedRows>(std::move(deal));
}

}  // namespace sinter
