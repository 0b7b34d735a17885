// The epilogue of a product may need pairs of rows of the matrix: a block computes
// both, and a lane has the sums of both.
#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/block_sums.h"
#include "kernels/colocated_epilogue.h"
#include "kernels/products/schedule.h"

namespace sinter {
namespace {

/// pairs: the epilogue needs rows of the matrix so far apart; 0: none.
bool has_config(const FusionProblem& problem, const Op& op, int64_t pairs) {
  const Graph& graph = problem.graph();
  const int64_t most = most_tokens(op, problem.symbols());
  if (order_of(op) == Order::tiled_codes)
    return codes_config(graph, op, most, problem.device()).has_value();
  if (most > kMostFewTokens)
    return tiled_linear_config(tiled_linear_problem(graph, op, most, pairs, problem.symbols()),
                               problem.device())
        .has_value();
  return few_tokens_config(few_tokens_problem(graph, op, most), problem.device()).has_value();
}

/// A product of codes has the boxes of few tokens, however many it has.
int64_t boxes_of_few_tokens(const Op& op, int64_t tokens) {
  return order_of(op) == Order::tiled_codes ? std::min(tokens, kMostFewTokens) : tokens;
}

}  // namespace

std::optional<Verdict> admits_tiled_linear_epilogue(const GroupView& group, GroupShape&) {
  const FusionProblem& problem = group.problem;
  const ValueId anchor = group.anchor();
  const Op& op = problem.graph()[anchor];
  const auto is_sum = [&](ValueId id) { return as_block_sums(problem.graph(), id).has_value(); };
  if (op.type.rank() != 2 || llvm::any_of(group.members, is_sum))
    return refuse(Reason::port_other_element, problem.name(anchor));
  auto deal = colocated_epilogue(group);
  if (auto* refusal = std::get_if<Verdict>(&deal)) return std::move(*refusal);
  const auto& rows = std::get<ColocatedRows>(deal);
  if (!tiled_linear_takes(rows, boxes_of_few_tokens(op, most_tokens(op, problem.symbols()))) ||
      !has_config(problem, op, rows.units == 2 ? rows.stride : 0))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", op.type.dims.back().constant(),
                              problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
