// The reasons to refuse a neighbour that only a gemv kernel has. Members of the prologue compute
// the operand's rows, again in every block; members of the epilogue are computed from the sums that
// one block can have (ir/colocation.h):
//
//   %n  = rms_norm %x, %w                      prologue: rows [N]
//   %gu = linear %n, %m {order = gemv}                          the anchor: [N, 2 * F]
//   %s  = silu (slice %gu 0..F)                epilogue: [N, F], from gu[n, j] and gu[n, F + j]
//   %a  = mul %s, (slice %gu F..2F)
#include "ir/grouping.h"
#include "kernels/colocated_epilogue.h"
#include "kernels/gemv/schedule.h"

namespace sinter {

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
  auto deal = colocated_epilogue(group);
  if (auto* refusal = std::get_if<Verdict>(&deal)) return std::move(*refusal);
  const GemvProduct product = gemv_product(graph, graph[anchor], problem.symbols());
  const int64_t units = std::get<ColocatedRows>(deal).units;
  merged.max_blocks = product.rows / units;
  if (product.rows == 0 || !schedule_gemv(product, units, problem.device()))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", product.rows, problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
