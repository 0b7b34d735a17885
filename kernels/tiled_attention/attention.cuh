// tiled_attention; kernels/tiled_attention/order.h states its order of operations.
//
// A block computes tiles of rows, kRows tokens of one query head, one after the other
// (attention_work_tiles.cuh). It finds in `first` and `last` which keys the rows of a tile see, and
// walks the tiles of keys from the lowest to the highest of them, without those between the sink
// and the ranges.
//
// Config, the constants of a kernel:
//   Element             of q, keys, values and result: f16 or bf16
//   kHeads, kKvHeads    query heads, and heads of keys and values
//   kWidth, kValueWidth elements of a head of q and keys, and of values
//   kRows, kThreads     tokens and threads of a block
//   kStages             tiles of keys, and of values, in shared memory
//   kQueryStages        tiles of queries
//   kWarpgroups         products of warpgroups, where the device has them (attention_wgmma.cuh);
//                       else of warps (attention_mma.cuh)
//   kAligned            rows of keys and values begin at multiples of 8 elements
//   kScale, kSoftcap, kFactor   see order.h
//   kWindow             keys that a token sees at most, 0: no bound
//   kSink               leading keys that a token sees beside them; absent: none
//   kSequences          there may be more than one sequence
//   kBulkCopies         tensor maps describe keys and values: whole tiles are bulk copies of one
//                       thread (attention_wgmma.cuh); absent: they do not
//   kLogSum             the log-sums are a result too; absent: they are not
//   kEmptyZero          a token that sees no key gets zeros, and not NaN
//   First, Last         the first and the last row that a token sees: first(token)
//   Mask                NoMask, MaskInMemory, MaskWithTiles or MaskWithDropout
//   (common/attention_operands.cuh)
#pragma once

#include "kernels/tiled_attention/attention_mma.cuh"
#include "kernels/tiled_attention/attention_wgmma.cuh"

namespace sinter {

// `q` gives elements of the queries: q(at), and q.chunk(out, at), 8 from a multiple of 8 on. `out`
// takes elements of the result: out.set(at, x), out.set_chunk(at, values). `shared`: bytes of
// shared memory, at a multiple of 1024.
template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend(const Query& q, const AttentionOperands<Config>& in, const Result& out,
                          unsigned char* shared) {
  const AttentionTiles<Config> work_tiles(in, shared);
#if SINTER_HAS_WGMMA
  if constexpr (Config::kWarpgroups)
    attend_by_warpgroups(work_tiles, in, shared, q, out);
  else
#endif
    attend_by_warps(work_tiles, q, out);
}

}  // namespace sinter
