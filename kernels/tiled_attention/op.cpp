// tiled_attention, and attention_log_sum. Constraint:
//   C24  16-bit elements, heads of at most kMaxHeadWidth elements, a scale other than 0, a mask
//   that
//        repeats along all leading axes or along none, a summary of its own tiles, segments of
//        whole tiles of keys, and splits of segments alone, without a dropout
#include "ir/attention_operands.h"
#include "ir/inference.h"
#include "ir/optional_attribute.h"
#include "kernels/tiled_attention/order.h"

namespace sinter {

namespace {

/// The constraints of attention with this result and of its log-sum.
Status check_tiles_of_keys(const Inference& op, const TensorType& whole) {
  if (dtype_info(whole.dtype).bits != 16)
    return op.reject(24, fmt::format("{} elements, must have 16 bits", to_string(whole.dtype)));
  const AttentionHeads heads = attention_heads(op.attrs, op.operands[1], op.operands[2]);
  if (!is_head_width(heads.width) || !is_head_width(heads.value_width))
    return op.reject(24, fmt::format("heads of {} and {} elements, must be 1 .. {}", heads.width,
                                     heads.value_width, kMaxHeadWidth));
  if (op.attrs.get<double>(AttrName::scale) == 0) return op.reject(24, "scale is 0");
  if (operands_before_seed(op.attrs, op.operands.size()) <= kMaskOperand) return {};
  const TensorType& mask = op.operands[kMaskOperand];
  if (!is_whole_mask(mask.dims, whole.dims))
    return op.reject(24, fmt::format("mask {} repeats along some leading axes of {}", op.show(mask),
                                     op.show(whole)));
  return {};
}

Status check_segments(const Inference& op) {
  const AttentionHeads heads = attention_heads(op.attrs, op.operands[1], op.operands[2]);
  const int64_t segment = integer_or(op.attrs, AttrName::segment, 0),
                splits = integer_or(op.attrs, AttrName::splits, 0),
                tile = attention_key_tile(static_cast<int>(heads.width),
                                          static_cast<int>(heads.value_width));
  if (op.attrs.has(AttrName::segment) &&
      (segment <= 0 || segment % tile != 0 || segment > kMaxAttentionSegment))
    return op.reject(24, fmt::format("segments of {} keys, must be a multiple of {} up to {}",
                                     segment, tile, kMaxAttentionSegment));
  if (op.attrs.has(AttrName::splits) && (segment == 0 || splits < 1 || splits > kMaxFewSplits))
    return op.reject(
        24, fmt::format("{} splits of segments of {} keys, must be 1 .. {} of segments", splits,
                        segment, kMaxFewSplits));
  if (op.attrs.has(AttrName::splits) && op.attrs.has(AttrName::dropout))
    return op.reject(24, "splits with a dropout");
  return {};
}

}  // namespace

Result<TensorType> infer_attention_log_sum(const Inference& op) {
  SINTER_LET(whole, infer_own_attention(op, kMaskOperand));
  SINTER_TRY(check_tiles_of_keys(op, whole));
  return token_heads_type(op.operands[0], op.attrs.get<int64_t>(AttrName::heads));
}

Status check_tiled_attention(const Inference& op, const TensorType& whole) {
  SINTER_TRY(check_tiles_of_keys(op, whole));
  SINTER_TRY(check_segments(op));
  if (operands_before_seed(op.attrs, op.operands.size()) <= kMaskTilesOperand) return {};
  const AttentionHeads heads = attention_heads(op.attrs, op.operands[1], op.operands[2]);
  const TensorType& mask = op.operands[kMaskOperand];
  const TensorType tiles{DType::i1,
                         mask_tile_dims(mask.dims, kAttentionTokenTile,
                                        attention_key_tile(static_cast<int>(heads.width),
                                                           static_cast<int>(heads.value_width)),
                                        op.symbols)};
  if (op.operands[kMaskTilesOperand] != tiles)
    return op.reject(
        24, fmt::format("tiles {} of the mask {}, must be {}",
                        op.show(op.operands[kMaskTilesOperand]), op.show(mask), op.show(tiles)));
  return {};
}

}  // namespace sinter
