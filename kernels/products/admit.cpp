// The epilogue of a product may need pairs of rows of the matrix: a block computes both, and a
// lane has the sums of both.
#include <llvm/ADT/STLExtras.h>

#include "ir/side_results.h"
#include "kernels/colocated_epilogue.h"
#include "kernels/products/schedule.h"

namespace sinter {

std::optional<Verdict> admits_product_epilogue(const GroupView& group, GroupShape&) {
  const FusionProblem& problem = group.problem;
  const ValueId anchor = group.anchor();
  const Op& op = problem.graph()[anchor];
  const auto is_sum = [&](ValueId id) { return as_block_sums(problem.graph(), id).has_value(); };
  if (op.kind == OpKind::grouped_outer || llvm::any_of(group.members, is_sum))
    return refuse(Reason::port_other_element, problem.name(anchor));
  auto deal = colocated_epilogue(group);
  if (auto* refusal = std::get_if<Verdict>(&deal)) return std::move(*refusal);
  const auto& rows = std::get<ColocatedRows>(deal);
  Product product = product_of(problem.graph(), op, problem.symbols());
  if (rows.units == 2) product.epilogue.pairs = rows.stride;
  // Boxes of pairs begin at the first row of a run's matrix.
  const bool splits_pairs =
      product.groups.count > 0 && rows.units == 2 && product.matrix.rows % (2 * rows.stride) != 0;
  if (splits_pairs || !takes_rows(product, rows) || !product_config(product, problem.device()))
    return refuse(Reason::profit_configuration,
                  fmt::format("the sums of {} rows of {}", op.type.dims.back().constant(),
                              problem.name(anchor)));
  return std::nullopt;
}

}  // namespace sinter
