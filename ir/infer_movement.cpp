// Concatenation, rows by index, the state that rows are appended to, and values made of parts.
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

Result<TensorType> infer_place(const Inference& op) {
  const TensorType& part = op.operands[0];
  const int64_t axis = op.attrs.get<int64_t>(AttrName::axis);
  const int64_t begin = op.attrs.get<int64_t>(AttrName::begin);
  const Dim size = op.attrs.get<Dim>(AttrName::size);
  SINTER_TRY(op.check_axis(axis, part.rank()));
  const Dim extent = part.dims[axis];
  TensorType result = part;
  result.dims[axis] = size;
  int64_t end = 0;
  if (!size.is_constant() || !extent.is_constant() || begin < 0 ||
      __builtin_add_overflow(begin, extent.constant(), &end) || end > size.constant())
    return op.reject(33, fmt::format("part {} from {} on of {} along axis {}", op.show(part), begin,
                                     to_string(size, op.symbols), axis));
  if (op.operands.size() > 1 && op.operands[1] != result)
    return op.reject(33,
                     fmt::format("base {}, must be {}", op.show(op.operands[1]), op.show(result)));
  return result;
}

Result<TensorType> infer_embedding(const Inference& op) {
  const TensorType &table = op.operands[0], &ids = op.operands[1];
  if (table.rank() < 2 || ids.rank() < 1 || ids.dtype != DType::i32)
    return op.reject(11, fmt::format("needs a table [V ..., D] and ids i32[..., N], got {} and {}",
                                     op.show(table), op.show(ids)));
  TensorType result{table.dtype, ids.dims};
  result.dims.push_back(table.dims.back());
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

Result<TensorType> infer_store(const Inference& op) {
  const TensorType &state = op.operands[0], &value = op.operands[1];
  if (state != value)
    return op.reject(42, fmt::format("state {}, value {}", op.show(state), op.show(value)));
  return state;
}

}  // namespace sinter
