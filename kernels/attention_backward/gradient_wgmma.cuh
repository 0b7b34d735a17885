// The gradients of attention by products of warpgroups: each of the first warpgroups multiplies 64
// of the block's own rows, the warps after them load tiles of other rows. Products of one warpgroup
// run while another, of this block or of one beside it, computes probabilities.
#pragma once

#include "kernels/attention_backward/gradient_scores.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/roles.cuh"
#include "kernels/tile/sums/wgmma.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// Threads of a block that multiply, and that load.
template <typename Config>
struct GradientRoles {
  static constexpr int kMultiplying = Config::kOwnRows / 64 * kWarpgroupThreads;
  static constexpr int kLoading = Config::kThreads - kMultiplying;
  static_assert(kLoading >= 32 && kLoading % 32 == 0, "whole warps load");
  // setmaxnreg is for whole warpgroups.
  static constexpr bool kMovesRegisters = kLoading == kWarpgroupThreads;
};

template <typename Config>
struct GradientShared {
  Pipeline<1> own;
  Pipeline<Config::kStages> pipeline;
  TokensOfTile<Config> tokens[Config::kOfKeys ? Config::kStages : 1];
};

template <typename Config>
SINTER_DEVICE void produce_others(const GradientBlock<Config>& block, GradientWalk<Config> walk,
                                  GradientShared<Config>& shared) {
  using Block = GradientBlock<Config>;
  using Roles = GradientRoles<Config>;
  constexpr int threads = Roles::kLoading;
  const int thread = static_cast<int>(threadIdx.x) - Roles::kMultiplying;
  PipelineState stages(shared.pipeline);
  // The numbers of a tile's tokens arrive while its thread waits for a stage.
  constexpr int count = Config::kOfKeys ? (Config::kOtherRows + threads - 1) / threads : 1;
  TokenNumbers numbers[count];
  const auto load_numbers = [&] {
    if (!Config::kOfKeys || !walk.has()) return;
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (const int row = thread + i * threads; row < Config::kOtherRows)
        numbers[i] = block.numbers_of(walk.turn(), block.other_row0(walk.tile()) + row);
  };
  load_numbers();
#pragma unroll 1
  while (walk.has()) {
    stages.producer_acquire();
    block.template load_other<threads>(walk.turn(), walk.tile(), stages.stage(), thread);
    if constexpr (Config::kOfKeys) {
#pragma unroll
      for (int i = 0; i < count; ++i)
        if (const int row = thread + i * threads; row < Config::kOtherRows)
          shared.tokens[stages.stage()].set(row, block.token_of(numbers[i]));
      mbarrier_arrive(stages.full());  // the arrival of copies says nothing of these stores
    }
    if constexpr (Block::kCopies)
      stages.producer_commit_copies();
    else
      stages.producer_commit();
    walk.advance();
    load_numbers();
  }
}

template <typename Config>
SINTER_DEVICE void multiply_others(const GradientBlock<Config>& block, GradientWalk<Config> walk,
                                   GradientShared<Config>& shared, int group) {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  const int row = 64 * group + first_row_in_warpgroup();
  const GradientScores<Config> scores(block, row);
  PipelineState(shared.own).consumer_wait();
  PipelineState stages(shared.pipeline);
  float first_sums[Sizes::width / 2] = {}, second_sums[Sizes::value_width / 2] = {};
#pragma unroll 1
  while (walk.has()) {
    float dots[Sizes::other / 2], products[Sizes::other / 2];
    unsigned probabilities[Sizes::other / 4], gradients[Sizes::other / 4];
    const GradientTile tile = scores.tile_of(walk);
    stages.consumer_wait();
    fence_proxy_async();  // copies are no writes of the products' kind
    const int stage = stages.stage();
    const auto& tokens = shared.tokens[Config::kOfKeys ? stage : 0];
    const auto kept = scores.find_kept(tile, tokens);
    multiply_tiles<T, Sizes::own, Sizes::other, Sizes::width>(dots, block.own_first(), 64 * group,
                                                              block.other_first(stage), false);
    wgmma_commit_group();
    if constexpr (Config::kFirst) {
      multiply_tiles<T, Sizes::own, Sizes::other, Sizes::value_width>(
          products, block.own_second(), 64 * group, block.other_second(stage), false);
      wgmma_commit_group();
    }
    walk.advance();
    wgmma_wait_group<Config::kFirst ? 1 : 0>(dots);
    scores.find_probabilities(dots, probabilities, tile, tokens, kept);
    if constexpr (Config::kSecond) {
      multiply_rows<T, Sizes::other, Sizes::value_width>(second_sums, probabilities,
                                                         block.other_second(stage));
      wgmma_commit_group();
    }
    if constexpr (Config::kFirst) {
      wgmma_wait_group<Config::kSecond ? 1 : 0>(products);
      scores.find_logit_gradients(dots, products, tile, tokens, kept);
      scores.pack_words(gradients, dots);
      multiply_rows<T, Sizes::other, Sizes::width>(first_sums, gradients, block.other_first(stage));
      wgmma_commit_group();
    }
    wgmma_wait_group<0>(first_sums);
    warpgroup_fence_operand(second_sums);
    stages.consumer_release_thread();
  }
  constexpr int multiplying = GradientRoles<Config>::kMultiplying;
  block.template store<multiplying>(first_sums, second_sums, row);
}

template <typename Config>
SINTER_DEVICE void find_gradients_by_warpgroups(const GradientBlock<Config>& block,
                                                const GradientWalk<Config>& walk) {
  using Roles = GradientRoles<Config>;
  __shared__ GradientShared<Config> shared;
  if (threadIdx.x == 0) {
    shared.own.init(Config::kThreads, 1);
    shared.pipeline.init((Config::kOfKeys ? 2 : 1) * Roles::kLoading, Roles::kMultiplying);
    fence_mbarrier_init();
  }
  __syncthreads();
  PipelineState own(shared.own);  // never emptied
  if constexpr (GradientBlock<Config>::kCopies)
    own.producer_commit_copies();
  else
    own.producer_commit();
  if (const int group = warpgroup_index(); group < Roles::kMultiplying / kWarpgroupThreads) {
    if constexpr (Roles::kMovesRegisters) setmaxnreg_inc<Config::kMultiplyingRegisters>();
    multiply_others(block, walk, shared, group);
  } else {
    if constexpr (Roles::kMovesRegisters) setmaxnreg_dec<Config::kLoadingRegisters>();
    produce_others(block, walk, shared);
  }
}

}  // namespace sinter
#endif
