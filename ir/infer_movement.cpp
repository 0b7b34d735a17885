// Concatenation, rows by index, and the state that rows are appended to.
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_concat(const Inference& op) {
  TensorType result = op.operands[0];
  const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
  SINTER_TRY(op.check_axis(axis, result.rank()));
  int64_t extent = 0;
  for (const TensorType& operand : op.operands) {
    TensorType aligned = operand;
    if (operand.rank() == result.rank()) aligned.dims[axis] = result.dims[axis];
    if (aligned != result || !operand.dims[axis].is_constant() ||
        __builtin_add_overflow(extent, operand.dims[axis].constant(), &extent))
      return op.reject(10, fmt::format("{} and {} along axis {}", op.show(op.operands[0]),
                                       op.show(operand), axis));
  }
  result.dims[axis] = extent;
  return result;
}

Result<TensorType> infer_embedding(const Inference& op) {
  const TensorType &table = op.operands[0], &ids = op.operands[1];
  if (table.rank() != 2 || ids.rank() < 1 || ids.dtype != DType::i32)
    return op.reject(11, fmt::format("needs a table [V, D] and ids i32[..., N], got {} and {}",
                                     op.show(table), op.show(ids)));
  TensorType result{table.dtype, ids.dims};
  result.dims.push_back(table.dims[1]);
  return result;
}

Result<TensorType> infer_gather(const Inference& op) {
  const TensorType &x = op.operands[0], &index = op.operands[1];
  const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
  SINTER_TRY(op.check_axis(axis, x.rank()));
  Dims dims = x.dims;
  if (index.rank() == x.rank()) dims[axis] = index.dims[axis];
  if (index != TensorType{DType::i32, dims})
    return op.reject(11, fmt::format("needs an index i32 with the extents of x but along axis {}, "
                                     "got x {} and index {}",
                                     axis, op.show(x), op.show(index)));
  return TensorType{x.dtype, dims};
}

Result<TensorType> infer_kv_append(const Inference& op) {
  const TensorType &state = op.operands[0], &value = op.operands[1], &slot = op.operands[2];
  const bool fits = state.rank() >= 1 && value.rank() == state.rank() &&
                    value.dtype == state.dtype &&
                    DimsRef(state.dims).drop_front() == DimsRef(value.dims).drop_front() &&
                    slot == TensorType{DType::i32, {value.dims[0]}};
  if (!fits)
    return op.reject(12, fmt::format("state {}, value {}, slot {}", op.show(state), op.show(value),
                                     op.show(slot)));
  return state;
}

}  // namespace sinter
