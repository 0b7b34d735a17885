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

// A multiplying warpgroup computes the sums of its 64 rows. Where registers allow (kAhead), it
// begins the dot products with the next tile while it still works on this one:
//
//   products | dP 0 |  q k 1, P0 grad | dS0 q | dP 1 |  q k 2, P1 grad | dS1 q | ...
//   scores   | P 0  |       dS 0      |       | P 1  |       dS 1      |       | ...
template <typename Config>
class GradientWarpgroup {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  using Dots = float[Sizes::other / 2];
  static constexpr bool kFirst = Config::kFirst, kSecond = Config::kSecond;
  static constexpr bool kAhead =
      (kFirst ? Sizes::width : 0) + (kSecond ? Sizes::value_width : 0) <= 128;

 public:
  SINTER_DEVICE GradientWarpgroup(const GradientBlock<Config>& block,
                                  const GradientWalk<Config>& walk, GradientShared<Config>& shared,
                                  int group)
      : block_(block),
        walk_(walk),
        shared_(shared),
        group_(group),
        scores_(block, row()),
        stages_(shared.pipeline),
        ahead_(shared.pipeline) {}

  SINTER_DEVICE void run() {
    Dots even, odd;
    if (walk_.has()) {
      begin_dots(even);
      if constexpr (kAhead) {
        while (step(even, odd) && step(odd, even)) {
        }
      } else {
        while (step(even, even)) begin_dots(even);
      }
    }
    if constexpr (kFirst) block_.store_first(first_sums_, row());
    if constexpr (kSecond) block_.store_second(second_sums_, row());
  }

 private:
  // The first of the lane's rows.
  SINTER_DEVICE int row() const { return 64 * group_ + first_row_in_warpgroup(); }

  // Begins the dot products with the next tile that comes.
  SINTER_DEVICE void begin_dots(Dots& dots) {
    ahead_.consumer_wait();
    fence_proxy_async();  // copies are no writes of the products' kind
    multiply_tiles<T, Sizes::own, Sizes::other, Sizes::width>(
        dots, block_.own_first(), 64 * group_, block_.other_first(ahead_.stage()), false);
    wgmma_commit_group();
    ahead_.advance();
  }

  // Adds what a tile gives, whose dot products have begun. Returns whether there is a next tile;
  // with kAhead its dot products begin too.
  SINTER_DEVICE bool step(Dots& dots, Dots& next_dots) {
    const int stage = stages_.stage();
    const GradientToken* const tokens = shared_.tokens[Config::kOfKeys ? stage : 0];
    Dots products;
    unsigned probabilities[Sizes::other / 4], gradients[Sizes::other / 4];
    if constexpr (kFirst) {
      multiply_tiles<T, Sizes::own, Sizes::other, Sizes::value_width>(
          products, block_.own_second(), 64 * group_, block_.other_second(stage), false);
      wgmma_commit_group();
    }
    wgmma_wait_group<kFirst ? 1 : 0>(dots);
    scores_.find_probabilities(dots, walk_, tokens);
    walk_.advance();
    const bool has_next = walk_.has();
    if (kAhead && has_next) begin_dots(next_dots);
    if constexpr (kSecond) {
      scores_.pack_words(probabilities, dots);
      multiply_rows<T, Sizes::other, Sizes::value_width>(second_sums_, probabilities,
                                                         block_.other_second(stage));
      wgmma_commit_group();
    }
    if constexpr (kFirst) {
      constexpr int later = kSecond ? 1 : 0;  // groups after dP
      if (kAhead && has_next)
        wgmma_wait_group<later + 1>(products);
      else
        wgmma_wait_group<later>(products);
      scores_.find_logit_gradients(dots, products, tokens);
      scores_.pack_words(gradients, dots);
      multiply_rows<T, Sizes::other, Sizes::width>(first_sums_, gradients,
                                                   block_.other_first(stage));
      wgmma_commit_group();
    }
    wgmma_wait_group<0>(first_sums_);
    warpgroup_fence_operand(second_sums_);
    if constexpr (kAhead) warpgroup_fence_operand(next_dots);
    stages_.consumer_release();
    return has_next;
  }

  const GradientBlock<Config>& block_;
  GradientWalk<Config> walk_;
  GradientShared<Config>& shared_;
  int group_;
  GradientScores<Config> scores_;
  PipelineState<Config::kStages> stages_, ahead_;  // of this tile; of the next one that comes
  float first_sums_[Sizes::width / 2] = {}, second_sums_[Sizes::value_width / 2] = {};
};

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
    GradientWarpgroup<Config>(block, walk, shared, warpgroup_index() - 1).run();
  }
}

}  // namespace sinter
#endif
