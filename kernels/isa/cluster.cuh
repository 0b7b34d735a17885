// Blocks that run at the same time and reach one another's shared memory: a cluster.
//
// In a launch of clusters of n blocks, the blocks with the same blockIdx.x / n are one cluster, and
// blockIdx.x % n is a block's rank. barrier.cluster has two halves: what a thread wrote before it
// arrived is visible to the threads that have waited. On a device without clusters a block is alone
// and the functions do nothing.
#pragma once

#include "kernels/isa/address.cuh"

namespace sinter {

/// %cluster_nctaid.x: the number of blocks of a cluster of this launch, 1 without clusters.
SINTER_DEVICE int cluster_nctaid_x() {
#if SINTER_HAS_CLUSTERS
  unsigned blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  return static_cast<int>(blocks);
#else
  return 1;
#endif
}

/// Arrives before the thread has written anything.
SINTER_DEVICE void barrier_cluster_arrive_relaxed() {
#if SINTER_HAS_CLUSTERS
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
#endif
}
SINTER_DEVICE void barrier_cluster_arrive() {
#if SINTER_HAS_CLUSTERS
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
#endif
}
SINTER_DEVICE void barrier_cluster_wait() {
#if SINTER_HAS_CLUSTERS
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
#endif
}

/// Writes `value` where `own` lies in the shared memory of the block of that rank; `blocks`: of the
/// cluster. mapa maps the address.
template <int blocks>
SINTER_DEVICE void st_shared_cluster(float* own, int rank, float value) {
#if SINTER_HAS_CLUSTERS
  if constexpr (blocks > 1) {
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
                 : "=r"(address)
                 : "r"(cvta_to_shared(own)), "r"(rank));
    asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
    return;
  }
#endif
  *own = value;
}

}  // namespace sinter
