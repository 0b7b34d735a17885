// The reasons to refuse a neighbour that only a gemv kernel has. Members of the prologue compute
// the operand's rows, again in every block; members of the epilogue are computed from the sums that
// one block can have (kernels/gemv/colocation.h):
//
//   %n  = rms_norm %x, %w                      prologue: rows [N]
//   %gu = linear %n, %m {order = gemv}                          the anchor: [N, 2 * F]
//   %s  = silu (slice %gu 0..F)                epilogue: [N, F], from gu[n, j] and gu[n, F + j]
//   %a  = mul %s, (slice %gu F..2F)
#include "ir/graph_copier.h"
#include "ir/grouping.h"
#include "ir/op_roles.h"
#include "kernels/gemv/colocation.h"
#include "kernels/gemv/schedule.h"
#include "kernels/group.h"

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

/// The kernel's text is made from its results (GemvEpilogue): the same question as there.
std::optional<Verdict> results_fit(const GroupView& group) {
  const Results results = results_of(group);
  const auto deal = colocated_rows(results.graph, results.sums, group.problem.symbols());
  const auto* stranger = std::get_if<NotColocated>(&deal);
  if (!stranger) return std::nullopt;
  const auto at =
      llvm::find(results.graph.outputs, stranger->reader) - results.graph.outputs.begin();
  return other_block(group, results.leaving[at], group.anchor());
}

}  // namespace

std::optional<Verdict> admits_gemv_prologue(const GroupView& group) {
  const Graph& graph = group.problem.graph();
  const TensorType& x = graph[graph[group.anchor()].operands[0]].type;
  const llvm::ArrayRef<Symbol> symbols = group.problem.symbols();
  const int64_t most = storage_bytes(x).upper_bound(symbols),
                limit = gemv_operand_limit(group.problem.device());
  if (most <= limit) return std::nullopt;
  return refuse(Reason::profit_configuration,
                fmt::format("rows of {} bytes in {} bytes of shared memory", most, limit));
}

std::optional<Verdict> admits_gemv_epilogue(const GroupView& group, GroupShape& merged) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const ValueId anchor = group.anchor();
  const auto deal = colocated_rows(graph, anchor, group.epilogue,
                                   [&](ValueId id) -> const OpFacts& { return problem.facts(id); });
  if (const auto* stranger = std::get_if<NotColocated>(&deal))
    return other_block(group, stranger->reader, stranger->root);
  if (auto refusal = results_fit(group)) return refusal;
  if (auto refusal = needs_no_result(group)) return refusal;
  const GemvProduct product = gemv_product(graph, graph[anchor], problem.symbols());
  const int64_t units = std::get<ColocatedRows>(deal).units;
  merged.max_blocks = product.rows / units;
  if (product.rows == 0 || !schedule_gemv(product, units, problem.device()))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", product.rows, problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
