// Blocks that run at the same time and reach one another's shared memory: a cluster. On a device
// without clusters a block is alone.
//
// Launched in clusters of n, a kernel's blocks with the same blockIdx.x / n are one; a block of it
// has the rank blockIdx.x % n. Its threads meet as at a barrier in two parts: what a thread wrote
// before it arrived is there for those that have waited.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

#if SINTER_SHIM
SINTER_DEVICE int cluster_blocks() { return sinter_shim_calls->context->cluster; }

SINTER_DEVICE void enter_cluster(SINTER_SHIM_SITE) {
  sinter_shim_calls->arrive_in_cluster(false, {file, line});
}
SINTER_DEVICE void arrive_in_cluster(SINTER_SHIM_SITE) {
  sinter_shim_calls->arrive_in_cluster(true, {file, line});
}
SINTER_DEVICE void wait_for_cluster(SINTER_SHIM_SITE) {
  sinter_shim_calls->wait_for_cluster({file, line});
}
template <int blocks>
SINTER_DEVICE void give(float* own, int rank, float value, SINTER_SHIM_SITE) {
  if constexpr (blocks == 1)
    *own = value;
  else
    sinter_shim_calls->give(own, rank, value, {file, line});
}

#elif SINTER_HAS_CLUSTERS

// The number of blocks of a cluster of this launch: 1 without clusters.
SINTER_DEVICE int cluster_blocks() {
  unsigned blocks;
  asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(blocks));
  return static_cast<int>(blocks);
}

// Arrives before anything was written.
SINTER_DEVICE void enter_cluster() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
SINTER_DEVICE void arrive_in_cluster() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}
SINTER_DEVICE void wait_for_cluster() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Writes `value` where `own` lies in the shared memory of the block of that rank, of `blocks`.
template <int blocks>
SINTER_DEVICE void give(float* own, int rank, float value) {
  if constexpr (blocks == 1) {
    *own = value;
    return;
  }
  unsigned address;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(address)
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(own))), "r"(rank));
  asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}
#else
SINTER_DEVICE int cluster_blocks() { return 1; }

SINTER_DEVICE void enter_cluster() {}
SINTER_DEVICE void arrive_in_cluster() {}
SINTER_DEVICE void wait_for_cluster() {}
template <int blocks>
SINTER_DEVICE void give(float* own, int, float value) {
  *own = value;
}
#endif

}  // namespace sinter
