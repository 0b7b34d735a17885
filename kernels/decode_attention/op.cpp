// decode_attention: attention whose heads its kernel can take.
#include <llvm/Support/MathExtras.h>

#include "ir/attention_operands.h"
#include "ir/inference.h"
#include "ir/optional_attribute.h"
#include "kernels/decode_attention/order.h"

namespace sinter {

Status check_decode_attention(const Inference& op, const TensorType& whole) {
  const int64_t splits = op.attrs.get<int64_t>(AttrName::splits);
  if (splits < 1 || splits > kMaxAttentionSplits)
    return op.reject(21, fmt::format("{} splits, must be 1 .. {}", splits, kMaxAttentionSplits));
  const AttentionHeads heads = attention_heads(op.attrs, op.operands[1], op.operands[2]);
  if (!is_head_width(heads.width) || !is_head_width(heads.value_width))
    return op.reject(21, fmt::format("heads of {} and {} elements, must be 1 .. {}", heads.width,
                                     heads.value_width, kMaxHeadWidth));
  const int lanes =
      attention_lanes(static_cast<int>(heads.width), static_cast<int>(heads.value_width));
  const int64_t streams = integer_or(op.attrs, AttrName::streams, attention_most_streams(lanes));
  const int64_t least = attention_neighbours(lanes), most = attention_most_streams(lanes);
  if (streams < least || streams > most || !llvm::isPowerOf2_64(static_cast<uint64_t>(streams)))
    return op.reject(
        21, fmt::format("{} streams, must be a power of two, {} .. {}", streams, least, most));
  if (op.attrs.has(AttrName::dropout)) return op.reject(21, "a dropout");
  if (op.operands.size() == 6 && !is_whole_mask(op.operands[5].dims, whole.dims))
    return op.reject(21, fmt::format("mask {} repeats along some leading axes of {}",
                                     op.show(op.operands[5]), op.show(whole)));
  return {};
}

}  // namespace sinter
