// attention_query_gradient, attention_key_gradient and attention_value_gradient. Constraint:
//   C29  16-bit elements, heads of at most kMaxGradientWidth elements, a scale other than 0; grad
//   of
//        the type of the attention's result, log_sum and delta f32 [..., heads, N]; a mask that
//        repeats along all leading axes or along none
#include "ir/attention_operands.h"
#include "ir/inference.h"
#include "kernels/attention_backward/order.h"

namespace sinter {
namespace {

/// A gradient has the type of the operand that it is the gradient of.
Result<TensorType> infer_gradient(const Inference& op, size_t of) {
  SINTER_LET(whole, infer_own_attention(op, kGradientMaskOperand));
  if (dtype_info(whole.dtype).bits != 16)
    return op.reject(29, fmt::format("{} elements, must have 16 bits", to_string(whole.dtype)));
  const AttentionHeads heads = attention_heads(op.attrs, op.operands[1], op.operands[2]);
  if (!is_gradient_width(heads.width) || !is_gradient_width(heads.value_width))
    return op.reject(29, fmt::format("heads of {} and {} elements, must be 1 .. {}", heads.width,
                                     heads.value_width, kMaxGradientWidth));
  if (op.attrs.get<double>(AttrName::scale) == 0) return op.reject(29, "scale is 0");
  const TensorType numbers = token_heads_type(op.operands[0], heads.count);
  if (op.operands[kGradOperand] != whole || op.operands[kLogSumOperand] != numbers ||
      op.operands[kDeltaOperand] != numbers)
    return op.reject(
        29, fmt::format("grad {}, log_sum {}, delta {}, must be {}, {}, {}",
                        op.show(op.operands[kGradOperand]), op.show(op.operands[kLogSumOperand]),
                        op.show(op.operands[kDeltaOperand]), op.show(whole), op.show(numbers),
                        op.show(numbers)));
  if (operands_before_seed(op.attrs, op.operands.size()) > kGradientMaskOperand &&
      !is_whole_mask(op.operands[kGradientMaskOperand].dims, whole.dims))
    return op.reject(29, fmt::format("mask {} repeats along some leading axes of {}",
                                     op.show(op.operands[kGradientMaskOperand]), op.show(whole)));
  return op.operands[of];
}

}  // namespace

Result<TensorType> infer_attention_query_gradient(const Inference& op) {
  return infer_gradient(op, 0);
}
Result<TensorType> infer_attention_key_gradient(const Inference& op) {
  return infer_gradient(op, 1);
}
Result<TensorType> infer_attention_value_gradient(const Inference& op) {
  return infer_gradient(op, 2);
}

}  // namespace sinter
