// Attention of many tokens becomes tiled_attention:
//
//   %y = attention %q, %k, %v, %first, %last {heads = 32, ...}
//   =>  %y = tiled_attention %q, %k, %v, %first, %last {heads = 32, ...}
#include "ir/builder.h"
#include "kernels/attention/order.h"

namespace sinter {

// Not of float32: its products would be rounded to 16 bits.
std::optional<ValueId> choose_tiled_attention(Builder& b, const Op& op) {
  if (op.kind != OpKind::attention) return std::nullopt;
  const TensorType &q = b.type(op.operands[0]), &values = b.type(op.operands[2]);
  const int64_t width = q.dims[1].constant() / op.attrs.get<int64_t>(AttrName::heads);
  const int64_t value_width = values.dims[1].constant() / op.attrs.get<int64_t>(AttrName::kv_heads);
  if (dtype_info(q.dtype).bits != 16 || !is_tiled_head_width(width) ||
      !is_tiled_head_width(value_width) || op.attrs.get<double>(AttrName::scale) == 0)
    return std::nullopt;
  return b.op(OpKind::tiled_attention, op.operands, op.attrs, op.name);
}

}  // namespace sinter
