// The sums of a tile whose operands come through the stages of a pipeline.
#pragma once

#include "kernels/isa/wgmma.cuh"
#include "kernels/tile/pipeline.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// The sums of no products.
template <int count>
SINTER_DEVICE void clear_sums(float (&sums)[count]) {
#pragma unroll
  for (float& sum : sums) sum = 0.0f;
}

// Waits until at most the last `groups` groups of the warpgroup's products have not ended.
template <int groups, int slabs, int count>
SINTER_DEVICE void wait_for_all_but(float (&sums)[slabs][count]) {
  wgmma_wait_group<groups>(sums[0]);
#pragma unroll
  for (int slab = 1; slab < slabs; ++slab) warpgroup_fence_operand(sums[slab]);
}

// Adds the products of `steps` stages, which issue(step) issues for `stage`; from step 1 on to sums
// that are there. Each step's products end before the next step's begin: other warpgroups multiply
// meanwhile.
template <int cluster, int stages, int slabs, int count, typename Issue>
SINTER_DEVICE void sum_stages(float (&sums)[slabs][count], PipelineState<stages>& stage, int steps,
                              Issue issue) {
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    stage.consumer_wait();
    issue(step);
    wgmma_commit_group();
    wait_for_all_but<0>(sums);
    stage.template consumer_release_cluster<cluster>();
  }
}

// The same of a number of steps that the text knows, where a step's products are issued before the
// previous step's have ended: a stage is given back a step later, through `read`. The last step's
// products may not have ended, and its stage is not given back.
template <int steps, int cluster, int stages, int slabs, int count, typename Issue>
SINTER_DEVICE void sum_stages_ahead(float (&sums)[slabs][count], PipelineState<stages>& stage,
                                    PipelineState<stages>& read, Issue issue) {
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    stage.consumer_wait();
    issue(step);
    wgmma_commit_group();
    stage.advance();
    wait_for_all_but<1>(sums);
    if (step > 0) read.template consumer_release_cluster<cluster>();
  }
}

// Warpgroups that multiply in turns, two, or one alone: a phase of multiplied[i] ends when
// warpgroup i has issued the products of a tile.
template <int warpgroups>
struct Turns {
  Barrier multiplied[warpgroups];

  SINTER_DEVICE void init(unsigned warps) {
    for (Barrier& barrier : multiplied) mbarrier_init(cvta_to_shared(&barrier), warps);
  }
};

// All sums of warpgroup `turn`'s `tile`-th tile. They begin when the other warpgroup has waited for
// all stages of the tile before: a wait for a stage tells apart its last two phases only.
template <int steps, int cluster, int stages, int slabs, int count, typename Issue>
SINTER_DEVICE void sum_in_turn(float (&sums)[slabs][count], Turns<2>& turns, int turn, int tile,
                               PipelineState<stages>& stage, Issue issue) {
  const unsigned phase = static_cast<unsigned>(tile % 2);
  mbarrier_try_wait_parity(cvta_to_shared(&turns.multiplied[1 - turn]),
                           turn == 0 ? phase ^ 1 : phase);
  PipelineState<stages> read = stage;
  sum_stages_ahead<steps, cluster>(sums, stage, read, issue);
  if (threadIdx.x % 32 == 0) mbarrier_arrive(cvta_to_shared(&turns.multiplied[turn]));
  wait_for_all_but<0>(sums);
  read.template consumer_release_cluster<cluster>();
}

}  // namespace sinter
#endif
