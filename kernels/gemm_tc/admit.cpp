// The epilogue of a product may need pairs of rows of the matrix: a block computes
// both, and a lane has the sums of both.
#include "kernels/colocated_epilogue.h"
#include "kernels/gemm_tc/schedule.h"

namespace sinter {

std::optional<Verdict> admits_tiled_linear_epilogue(const GroupView& group, GroupShape&) {
  const FusionProblem& problem = group.problem;
  const ValueId anchor = group.anchor();
  const Op& op = problem.graph()[anchor];
  if (op.type.rank() != 2) return refuse(Reason::port_other_element, problem.name(anchor));
  auto deal = colocated_epilogue(group);
  if (auto* refusal = std::get_if<Verdict>(&deal)) return std::move(*refusal);
  const int64_t most = most_tokens(op, problem.symbols());
  const FewTokensProblem product = few_tokens_problem(problem.graph(), op, most);
  const auto& rows = std::get<ColocatedRows>(deal);
  const bool has_config =
      most <= kMostFewTokens
          ? few_tokens_config(product, problem.device()).has_value()
          : tiled_linear_config(most, product.rows, rows.units == 2, problem.device()).has_value();
  if (!has_config || !tiled_linear_takes(rows, most))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", product.rows, problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
