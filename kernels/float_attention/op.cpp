// float_attention. Constraint:
//   C27  elements of f32, heads of at most kMaxHeadWidth elements, a mask that repeats along all
//        leading axes or along none, and no dropout
#include "ir/attention_operands.h"
#include "ir/inference.h"
#include "kernels/float_attention/order.h"

namespace sinter {

Status check_float_attention(const Inference& op, const TensorType& whole) {
  if (whole.dtype != DType::f32)
    return op.reject(27, fmt::format("{} elements, must be f32", to_string(whole.dtype)));
  const AttentionHeads heads = attention_heads(op.attrs, op.operands[1], op.operands[2]);
  if (!is_head_width(heads.width) || !is_head_width(heads.value_width))
    return op.reject(27, fmt::format("heads of {} and {} elements, must be 1 .. {}", heads.width,
                                     heads.value_width, kMaxHeadWidth));
  if (op.attrs.has(AttrName::dropout)) return op.reject(27, "a dropout");
  if (op.operands.size() == 6 && !is_whole_mask(op.operands[5].dims, whole.dims))
    return op.reject(27, fmt::format("mask {} repeats along some leading axes of {}",
                                     op.show(op.operands[5]), op.show(whole)));
  return {};
}

}  // namespace sinter
