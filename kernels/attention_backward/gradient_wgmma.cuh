// The gradients of attention by products of warpgroups: the first warpgroup loads tiles of other
// rows, each of the others multiplies 64 of the block's own rows. Products of one run while the
// other computes probabilities.
#pragma once

#include "kernels/attention_backward/gradient_scores.cuh"
#include "kernels/tile/pipeline.cuh"
#include "kernels/tile/product.cuh"
#include "kernels/tile/roles.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

template <typename Config>
struct GradientShared {
  Pipeline<Config::kStages> pipeline;
  GradientToken tokens[Config::kOfKeys ? Config::kStages : 1]
                      [Config::kOfKeys ? Config::kOtherRows : 1];
};

template <typename Config>
SINTER_DEVICE void produce_others(const GradientBlock<Config>& block, GradientWalk<Config> walk,
                                  GradientShared<Config>& shared) {
  using Block = GradientBlock<Config>;
  const int thread = thread_in_warpgroup();
  PipelineState stages(shared.pipeline);
#pragma unroll 1
  for (; walk.has(); walk.advance()) {
    stages.producer_acquire();
    block.template load_other<kWarpgroupThreads>(walk.turn(), walk.tile(), stages.stage(), thread);
    if constexpr (Config::kOfKeys) {
      for (int i = thread; i < Config::kOtherRows; i += kWarpgroupThreads)
        shared.tokens[stages.stage()][i] =
            block.token(walk.turn(), static_cast<long long>(walk.tile()) * Config::kOtherRows + i);
      mbarrier_arrive(stages.full());  // the arrival of copies says nothing of these stores
    }
    if constexpr (Block::kCopies)
      stages.producer_commit_copies();
    else
      stages.producer_commit();
  }
}

template <typename Config>
SINTER_DEVICE void multiply_others(const GradientBlock<Config>& block, GradientWalk<Config> walk,
                                   GradientShared<Config>& shared, int group) {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  const int row = 64 * group + first_row_in_warpgroup();
  const GradientScores<Config> scores(block, row);
  PipelineState stages(shared.pipeline);
  float first_sums[Sizes::width / 2] = {}, second_sums[Sizes::value_width / 2] = {};
#pragma unroll 1
  for (; walk.has(); walk.advance()) {
    float dots[Sizes::other / 2], products[Sizes::other / 2];
    unsigned probabilities[Sizes::other / 4], gradients[Sizes::other / 4];
    stages.consumer_wait();
    fence_proxy_async();  // copies are no writes of the products' kind
    const int stage = stages.stage();
    const GradientToken* const tokens = shared.tokens[Config::kOfKeys ? stage : 0];
    multiply_tiles<T, Sizes::own, Sizes::other, Sizes::width>(dots, block.own_first(), 64 * group,
                                                              block.other_first(stage), false);
    wgmma_commit_group();
    if constexpr (Config::kFirst) {
      multiply_tiles<T, Sizes::own, Sizes::other, Sizes::value_width>(
          products, block.own_second(), 64 * group, block.other_second(stage), false);
      wgmma_commit_group();
    }
    wgmma_wait_group<Config::kFirst ? 1 : 0>(dots);
    scores.find_probabilities(dots, walk, tokens);
    if constexpr (Config::kSecond) {
      scores.pack_words(probabilities, dots);
      multiply_rows<T, Sizes::other, Sizes::value_width>(second_sums, probabilities,
                                                         block.other_second(stage));
      wgmma_commit_group();
    }
    if constexpr (Config::kFirst) {
      wgmma_wait_group<Config::kSecond ? 1 : 0>(products);
      scores.find_logit_gradients(dots, products, tokens);
      scores.pack_words(gradients, dots);
      multiply_rows<T, Sizes::other, Sizes::width>(first_sums, gradients, block.other_first(stage));
      wgmma_commit_group();
    }
    wgmma_wait_group<0>(first_sums);
    warpgroup_fence_operand(second_sums);
    stages.consumer_release();
  }
  if constexpr (Config::kFirst) block.store_first(first_sums, row);
  if constexpr (Config::kSecond) block.store_second(second_sums, row);
}

template <typename Config>
SINTER_DEVICE void find_gradients_by_warpgroups(const GradientBlock<Config>& block,
                                                const GradientWalk<Config>& walk) {
  static_assert(Config::kThreads == (1 + Config::kOwnRows / 64) * kWarpgroupThreads,
                "one warpgroup loads, and one multiplies 64 rows");
  __shared__ GradientShared<Config> shared;
  block.template load_own<Config::kThreads>(static_cast<int>(threadIdx.x));
  if (threadIdx.x == 0) {
    constexpr unsigned multiplying = Config::kOwnRows / 16;  // warps
    shared.pipeline.init((Config::kOfKeys ? 2 : 1) * kWarpgroupThreads, multiplying);
    fence_mbarrier_init();
  }
  cp_async_commit_group();
  cp_async_wait_group<0>();
  fence_proxy_async();
  __syncthreads();
  if (threadIdx.x < kWarpgroupThreads) {
    setmaxnreg_dec<40>();
    produce_others(block, walk, shared);
  } else {
    setmaxnreg_inc<232>();
    multiply_others(block, walk, shared, warpgroup_index() - 1);
  }
}

}  // namespace sinter
#endif
