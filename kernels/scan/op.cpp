// cumulative_sum. Constraint:
//   C22  cumulative_sum: elements of a float type or i32, an axis of at most 2^20 elements; reverse
//        and exclusive are 0 or 1
#include "ir/inference.h"
#include "ir/sym_expr.h"
#include "kernels/scan/order.h"

namespace sinter {

Result<TensorType> infer_cumulative_sum(const Inference& op) {
  const TensorType& x = op.operands[0];
  const auto axis = op.attrs.get<int64_t>(AttrName::axis);
  SINTER_TRY(op.check_axis(axis, x.rank()));
  if (!is_float(x.dtype) && x.dtype != DType::i32)
    return op.reject(22, fmt::format("adds elements of a float type or i32, got {}", op.show(x)));
  if (SymExpr(x.dims[axis]).upper_bound(op.symbols) > kMaxScanned)
    return op.reject(
        22, fmt::format("axis {} of {} may have more than {} elements; sum slices of it", axis,
                        op.show(x), kMaxScanned));
  for (AttrName name : {AttrName::reverse, AttrName::exclusive})
    if (op.attrs.has(name))
      if (const auto value = op.attrs.get<int64_t>(name); value != 0 && value != 1)
        return op.reject(22, fmt::format("{} is {}, must be 0 or 1", to_string(name), value));
  return x;
}

}  // namespace sinter
