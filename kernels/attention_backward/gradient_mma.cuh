// The gradients of attention by products of warps: a warp has 16 of the block's own rows. All warps
// load the next tile of other rows while they multiply with this one. Warps beyond the block's rows
// only load (a plan for warpgroups on a device without them).
#pragma once

#include "kernels/attention_backward/gradient_scores.cuh"
#include "kernels/tile/sums/mma.cuh"

namespace sinter {

template <typename Config>
SINTER_DEVICE void find_gradients_by_warps(const GradientBlock<Config>& block,
                                           GradientWalk<Config> walk) {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  static_assert(Config::kStages >= 2, "a tile is loaded while another one is multiplied");
  __shared__ TokensOfTile<Config> tokens[2];
  const int thread = static_cast<int>(threadIdx.x), row0 = thread / 32 * 16;
  const bool computes = row0 < Sizes::own;
  const int row = (computes ? row0 : 0) + thread % 32 / 4;
  const auto load = [&](const GradientWalk<Config>& at, int stage) {
    if (at.has()) {
      if constexpr (Config::kOfKeys)
        for (int i = thread; i < Config::kOtherRows; i += Config::kThreads)
          tokens[stage].set(i, block.token(at.turn(), block.other_row0(at.tile()) + i));
      block.template load_other<Config::kThreads>(at.turn(), at.tile(), stage, thread);
    }
    cp_async_commit_group();
  };
  load(walk, 0);  // the block's own tiles arrive with it
  const GradientScores<Config> scores(block, row);
  float first_sums[Sizes::width / 2] = {}, second_sums[Sizes::value_width / 2] = {};
  GradientWalk<Config> next = walk;
#pragma unroll 1
  for (int stage = 0; walk.has(); walk = next, stage ^= 1) {
    next.advance();
    load(next, stage ^ 1);
    cp_async_wait_group<1>();
    __syncthreads();  // the tile is there
    if (computes) {
      float dots[Sizes::other / 2], products[Sizes::other / 2];
      unsigned words[Sizes::other / 4];
      const GradientTile tile = scores.tile_of(walk);
      const auto kept = scores.find_kept(tile, tokens[stage]);
      multiply_tiles_by_warp<T, Sizes::own, Sizes::other, Sizes::width>(
          dots, block.own_first(), row0, block.other_first(stage));
      scores.find_probabilities(dots, words, tile, tokens[stage], kept);
      if constexpr (Config::kSecond)
        multiply_rows_by_warp<T, Sizes::other, Sizes::value_width>(second_sums, words,
                                                                   block.other_second(stage));
      if constexpr (Config::kFirst) {
        multiply_tiles_by_warp<T, Sizes::own, Sizes::other, Sizes::value_width>(
            products, block.own_second(), row0, block.other_second(stage));
        scores.find_logit_gradients(dots, products, tile, tokens[stage], kept);
        scores.pack_words(words, dots);
        multiply_rows_by_warp<T, Sizes::other, Sizes::width>(first_sums, words,
                                                             block.other_first(stage));
      }
    }
    __syncthreads();  // the tile is no longer needed
  }
  cp_async_wait_group<0>();
  if (!computes) return;
  constexpr int multiplying = Config::kOwnRows / 16 * 32;
  block.template store<multiplying>(first_sums, second_sums, row);
}

}  // namespace sinter
