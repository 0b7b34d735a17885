// The gradients of attention; kernels/attention_backward/order.h states their order of operations.
//
// Config, the constants of a kernel:
//   Element             of q, keys, values, grad and results: f16 or bf16
//   kOfKeys             a block has keys, and computes the gradients of keys and values; else
//   tokens,
//                       and computes the gradient of queries
//   kFirst, kSecond     the first of these gradients is computed, the second
//   kStoresFirst, kStoresSecond   it is stored
//   kSumsFirst, kSumsSecond       sums of its rows are stored (gradient_sums.cuh)
//   kHeads, kKvHeads    query heads, and heads of keys and values
//   kWidth, kValueWidth elements of a head of q and keys, and of values
//   kOwnRows, kOtherRows   rows of a block, and of a tile of those that it walks
//   kThreads            of a block
//   kStages             tiles of other rows in shared memory
//   kCachedBytes        of other rows that the L2 cache keeps for blocks (CachedLists)
//   kLoadingRegisters, kMultiplyingRegisters   of a thread, where a whole warpgroup loads
//   kWarpgroups         products of warpgroups, where the device has them (gradient_wgmma.cuh);
//   else
//                       of warps (gradient_mma.cuh)
//   kAligned            rows of all operands begin at multiples of 8 elements
//   FirstResult, SecondResult   where these gradients are stored (placed_result.cuh)
//   kScale, kSoftcap, kFactor, kWindow   as of attention
//   First, Last, Mask   the same
#pragma once

#include "kernels/attention_backward/gradient_mma.cuh"
#include "kernels/attention_backward/gradient_wgmma.cuh"

namespace sinter {

// `shared`: bytes of shared memory, at a multiple of 1024.
template <typename Config>
SINTER_DEVICE void find_gradients(const GradientOperands<Config>& in, unsigned char* shared) {
  const GradientBlock<Config> block(in, shared);
  if (!block.has_rows()) return;
  block.load_own();  // while the block finds what it walks
  __shared__ SeenTokens seen;
  if constexpr (Config::kOfKeys) {
    block.find_seen_tokens(seen);
    __syncthreads();
  }
  const GradientWalk<Config> walk(block, seen);
#if SINTER_HAS_WGMMA
  if constexpr (Config::kWarpgroups)
    find_gradients_by_warpgroups(block, walk);
  else
#endif
    find_gradients_by_warps(block, walk);
}

}  // namespace sinter
