// scatter_add. Constraint:
//   C25  scatter_add: index i32 [N], updates [N, D] of a float type, at most 2^31 of N and of rows
#include "ir/inference.h"
#include "ir/sym_expr.h"

namespace sinter {

Result<TensorType> infer_scatter_add(const Inference& op) {
  const TensorType &index = op.operands[0], &updates = op.operands[1];
  const Dim rows = op.attrs.get<Dim>(AttrName::rows);
  if (updates.rank() != 2 || !is_float(updates.dtype) ||
      index != TensorType{DType::i32, {updates.dims[0]}})
    return op.reject(25,
                     fmt::format("needs an index i32[N] and updates [N, D] of a float type, got "
                                 "{} and {}",
                                 op.show(index), op.show(updates)));
  constexpr int64_t kMax = int64_t{1} << 31;
  for (const Dim extent : {rows, updates.dims[0]})
    if (SymExpr(extent).upper_bound(op.symbols) > kMax)
      return op.reject(
          25, fmt::format("{} rows, at most 2^31 are possible", to_string(extent, op.symbols)));
  return TensorType{updates.dtype, {rows, updates.dims[1]}};
}

}  // namespace sinter
