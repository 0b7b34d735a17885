// tiled_attention; kernels/attention/order.h states its order of operations.
//
// A block computes a tile of rows, kRows tokens of one query head. It finds in `first` and `last`
// which keys its rows see, and walks the tiles of keys from the lowest to the highest of them.
// Blocks of late tokens, which see the most keys where attention is causal, come first.
//
// Config, the constants of a kernel:
//   Element             of q, keys, values and result: f16 or bf16
//   kHeads, kKvHeads    query heads, and heads of keys and values
//   kWidth, kValueWidth elements of a head of q and keys, and of values
//   kRows, kThreads     tokens and threads of a block
//   kStages             tiles of keys, and of values, in shared memory
//   kWarpgroups         products of warpgroups, where the device has them (attention_wgmma.cuh);
//                       else of warps (attention_mma.cuh)
//   kAligned            rows of keys and values begin at multiples of 8 elements
//   kScale, kSoftcap, kFactor   see order.h
//   kWindow             keys that a token sees at most, 0: no bound
#pragma once

#include "kernels/attention/attention_mma.cuh"
#include "kernels/attention/attention_tiles.cuh"
#include "kernels/attention/attention_wgmma.cuh"

namespace sinter {

// `q` gives elements of the queries: q(at), and q.chunk(out, at), 8 from a multiple of 8 on. `out`
// takes those of the result: out.set(at, x), out.set_chunk(at, values). `shared`: bytes of shared
// memory, at a multiple of 1024.
template <typename Config, typename Query, typename Result>
SINTER_DEVICE void attend(const Query& q, const AttentionOperands<typename Config::Element>& in,
                          const Result& out, unsigned char* shared) {
  const int tiles = static_cast<int>((in.tokens + Config::kRows - 1) / Config::kRows);
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) / Config::kHeads;
  if (tile < 0) return;
  const AttentionBlock<Config> block(in, tile, static_cast<int>(blockIdx.x) % Config::kHeads,
                                     shared);
#if SINTER_HAS_WGMMA
  if constexpr (Config::kWarpgroups)
    attend_by_warpgroups<Config>(block, q, out);
  else
#endif
    attend_by_warps<Config>(block, q, out);
}

}  // namespace sinter
