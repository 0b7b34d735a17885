// Attention of many tokens of float32 becomes float_attention:
//
//   %y = attention %q, %k, %v, %first, %last {heads = 32, ...}
//   =>  %y = float_attention %q, %k, %v, %first, %last {heads = 32, ...}
#include "ir/attention_operands.h"
#include "ir/builder.h"
#include "kernels/attention_f32/order.h"

namespace sinter {

std::optional<ValueId> choose_float_attention(Builder& b, const Op& op, Tokens) {
  if (op.kind != OpKind::attention || op.type.dtype != DType::f32) return std::nullopt;
  const AttentionHeads heads =
      attention_heads(op.attrs, b.type(op.operands[1]), b.type(op.operands[2]));
  if (!is_head_width(heads.width) || !is_head_width(heads.value_width)) return std::nullopt;
  return b.op(OpKind::float_attention, with_whole_mask(b, op), op.attrs, op.name);
}

}  // namespace sinter
