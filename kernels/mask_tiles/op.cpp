// mask_tiles. Constraint:
//   C28  mask_tiles: a mask [..., heads, N, R] of i1 or a float type; tile_tokens and tile_keys
//        multiples of 32, 32 .. 1024
#include "ir/attention_operands.h"
#include "ir/inference.h"

namespace sinter {

Result<TensorType> infer_mask_tiles(const Inference& op) {
  const TensorType& mask = op.operands[0];
  if (mask.rank() < 3 || (mask.dtype != DType::i1 && !is_float(mask.dtype)))
    return op.reject(28, fmt::format("mask {}, must be [..., heads, N, R] of i1 or a float type",
                                     op.show(mask)));
  const int64_t tokens = op.attrs.get<int64_t>(AttrName::tile_tokens);
  const int64_t keys = op.attrs.get<int64_t>(AttrName::tile_keys);
  for (const int64_t extent : {tokens, keys})
    if (extent < 32 || extent > 1024 || extent % 32 != 0)
      return op.reject(28, fmt::format("tiles of {} tokens and {} keys, must be multiples of 32, "
                                       "32 .. 1024",
                                       tokens, keys));
  return TensorType{DType::i1, mask_tile_dims(mask.dims, tokens, keys, op.symbols)};
}

}  // namespace sinter
