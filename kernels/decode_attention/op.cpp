// decode_attention: an attention whose heads its kernel can take.
#include "ir/inference.h"
#include "kernels/decode_attention/order.h"

namespace sinter {

Result<TensorType> infer_decode_attention(const Inference& op) {
  SINTER_LET(whole, infer_attention(op));
  const int64_t heads = op.attrs.get<int64_t>(AttrName::heads),
                splits = op.attrs.get<int64_t>(AttrName::splits);
  if (splits < 1 || splits > kMaxAttentionSplits)
    return op.reject(21, fmt::format("{} splits, must be 1 .. {}", splits, kMaxAttentionSplits));
  const int64_t width = op.operands[0].dims[1].constant() / heads;
  const int64_t value_width = whole.dims[1].constant() / heads;
  if (!is_few_head_width(width) || !is_few_head_width(value_width))
    return op.reject(21, fmt::format("heads of {} and {} elements, must be 1 .. {}", width,
                                     value_width, kMaxHeadWidth));
  return whole;
}

}  // namespace sinter
