// Attention of many tokens becomes tiled_attention:
//
//   %y = attention %q, %k, %v, %first, %last {heads = 32, ...}
//   =>  %y = tiled_attention %q, %k, %v, %first, %last {heads = 32, ...}
#include "ir/attention_operands.h"
#include "ir/builder.h"
#include "kernels/attention/order.h"

namespace sinter {

// Not of float32: its products would be rounded to 16 bits.
std::optional<ValueId> choose_tiled_attention(Builder& b, const Op& op, Tokens) {
  if (op.kind != OpKind::attention) return std::nullopt;
  const TensorType& keys = b.type(op.operands[1]);
  const AttentionHeads heads = attention_heads(op.attrs, keys, b.type(op.operands[2]));
  if (dtype_info(keys.dtype).bits != 16 || !is_head_width(heads.width) ||
      !is_head_width(heads.value_width) || op.attrs.get<double>(AttrName::scale) == 0)
    return std::nullopt;
  return b.op(OpKind::tiled_attention, with_whole_mask(b, op), op.attrs, op.name);
}

}  // namespace sinter
