// The sums of a tile whose operands come through the stages of a pipeline.
#pragma once

#include "kernels/isa/wgmma.cuh"
#include "kernels/tile/pipeline.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// Waits until at most the last `groups` groups of the warpgroup's products have not ended.
template <int groups, int slabs, int count>
SINTER_DEVICE void wait_for_all_but(float (&sums)[slabs][count]) {
  wgmma_wait_group<groups>(sums[0]);
#pragma unroll
  for (int slab = 1; slab < slabs; ++slab) warpgroup_fence_operand(sums[slab]);
}

// Adds the products of `steps` stages, which issue(adds) issues for `stage`; adds: to sums that are
// there. Each step's products end before the next step's begin: other warpgroups multiply
// meanwhile.
template <int steps, int cluster, int stages, int slabs, int count, typename Issue>
SINTER_DEVICE void sum_stages(float (&sums)[slabs][count], PipelineState<stages>& stage,
                              Issue issue) {
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    stage.consumer_wait();
    issue(step > 0);
    wgmma_commit_group();
    wait_for_all_but<0>(sums);
    stage.template consumer_release_cluster<cluster>();
  }
}

// The same, where a step's products are issued before the previous step's have ended: a stage is
// given back a step later, through `read`. The last step's products may not have ended, and its
// stage is not given back.
template <int steps, int cluster, int stages, int slabs, int count, typename Issue>
SINTER_DEVICE void sum_stages_ahead(float (&sums)[slabs][count], PipelineState<stages>& stage,
                                    PipelineState<stages>& read, Issue issue) {
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    stage.consumer_wait();
    issue(step > 0);
    wgmma_commit_group();
    stage.advance();
    wait_for_all_but<1>(sums);
    if (step > 0) read.template consumer_release_cluster<cluster>();
  }
}

}  // namespace sinter
#endif
