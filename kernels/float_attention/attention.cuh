// float_attention; kernels/float_attention/order.h states its order of operations.
//
// A block computes kRows tokens of one query head. It finds in `first` and `last` which keys they
// see and walks the tiles of keys from the lowest to the highest of them, without those between the
// sink and the ranges. Parts of a tile go
// through two buffers of shared memory, one of which is loaded while the other is used:
//
//   load      | keys 0 | keys 1 | values 0  | values 1  | keys 0 of the next tile
//   multiply           | q k    | q k       | weights v | weights v
//
// For heads of 64 elements: 32 elements of 64 keys, the other 32, then the values of 32 keys and of
// the other 32. A warp has 16 tokens; a lane has 4 of them, and of every tile 8 keys and of every
// 32 elements of the result 4.
//
// Config, the constants of a kernel:
//   kHeads, kKvHeads    query heads, and heads of keys and values
//   kWidth, kValueWidth elements of a head of q and keys, and of values
//   kRows, kThreads     tokens and threads of a block
//   kAligned            rows of keys and values begin at multiples of 8 elements
//   kScale, kSoftcap    see order.h
//   kWindow             keys that a token sees at most, 0: no bound
//   kSink               leading keys that a token sees beside them; absent: none
//   kEmptyZero          a token that sees no key gets zeros, and not NaN
//   First, Last         the first and the last row that a token sees: first(token)
//   Mask                NoMask or MaskInMemory (kernels/common/attention_operands.cuh)
#pragma once

#include "kernels/float_attention/attention_lane.cuh"
#include "kernels/float_attention/attention_parts.cuh"

namespace sinter {

// `q` gives elements of the queries: q(at), and q.chunk(out, at), 8 from a multiple of 8 on. `out`
// takes elements of the result: out.set(at, x), out.set_chunk(at, values). `shared`: the layout's
// bytes of shared memory.
template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend_floats(const Query& q, const FloatAttentionOperands<Config>& in,
                                 const Result& out, unsigned char* shared) {
  const FloatAttentionBlock<Config> block(in, reinterpret_cast<float*>(shared));
  if (!block.is_there()) return;
  const KeyRange seen = block.seen_by_all();
  int begin = kSinkOf<Config> != 0 ? 0 : seen.low / kFloatTileKeys * kFloatTileKeys;
  FloatAttentionParts<Config> parts(block, seen, begin);
  constexpr int of_keys = parts.of_keys, of_values = parts.of_values;
  block.load_queries(q);
  FloatAttentionLane<Config> lane(block);
#pragma unroll 1
  for (; begin < seen.end;
       begin = after_gap<Config>(begin + kFloatTileKeys, seen.low, kFloatTileKeys)) {
    const bool seen_by_warp = lane.sees_tile(begin);
    float scores[kLaneRows][kLaneKeys] = {};
#pragma unroll 1
    for (int part = 0; part < of_keys; ++part) {
      const float* keys = parts.take(begin, part + 1);
      if (seen_by_warp) lane.multiply_keys(scores, keys, part);
    }
    if (seen_by_warp) lane.weigh(scores, begin);
#pragma unroll 1
    for (int part = 0; part < of_values; ++part) {
      const float* values = parts.take(begin, of_keys + part + 1);
      if (seen_by_warp) lane.add_values(values, part, begin);
    }
  }
  lane.store(out);
}

}  // namespace sinter
