// The order of attention of many tokens of float32 is float_attention:
//
//   %y = attention %q, %k, %v, %first, %last {heads = 32, ...}
//   =>  %y = attention %q, %k, %v, %first, %last {order = float_attention, heads = 32, ...}
#include "ir/attention_operands.h"
#include "ir/builder.h"
#include "kernels/float_attention/order.h"

namespace sinter {

std::optional<ValueId> choose_float_attention(Builder& b, const Op& op, Tokens,
                                              const Recipe& recipe) {
  if (!is_without_order(op, OpKind::attention) || op.attrs.has(AttrName::dropout) ||
      op.type.dtype != DType::f32 || recipe.attention == Recipe::Attention::composed)
    return std::nullopt;
  const AttentionHeads heads =
      attention_heads(op.attrs, b.type(op.operands[1]), b.type(op.operands[2]));
  if (!is_head_width(heads.width) || !is_head_width(heads.value_width)) return std::nullopt;
  Attributes attrs = op.attrs;
  attrs.set(AttrName::order, Order::float_attention);
  return b.op(OpKind::attention, with_whole_mask(b, op), std::move(attrs), op.name);
}

}  // namespace sinter
