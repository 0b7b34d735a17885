// The epilogue of expert_linear may need several sums together (ir/colocation.h):
//
//   silu(p[n, e, j]) * p[n, e, F + j]       rows j and F + j of one expert's matrix
//   sum over e of weight[n, e] * p[n, e, j]  rows j of the matrices of all experts of a token
#include "ir/grouping.h"
#include "kernels/colocated_epilogue.h"

namespace sinter {

std::optional<Verdict> admits_expert_epilogue(const GroupView& group, GroupShape&) {
  const auto own = colocated_epilogue(group);
  if (std::holds_alternative<ColocatedRows>(own)) return std::nullopt;
  const auto all = colocated_epilogue(group, /*row_axes=*/2);
  const auto* deal = std::get_if<ColocatedRows>(&all);
  const DimsRef dims = group.problem.graph()[group.anchor()].type.dims;
  if (deal && deal->joins_matrices(dims[1].constant(), dims[2].constant())) return std::nullopt;
  return std::get<Verdict>(own);
}

}  // namespace sinter
