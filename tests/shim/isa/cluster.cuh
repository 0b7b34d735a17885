// Clusters: the block runner plays them.
#pragma once

#include "kernels/isa/address.cuh"

namespace sinter {

SINTER_DEVICE int cluster_nctaid_x() { return sinter_shim_calls->context->cluster; }

SINTER_DEVICE void barrier_cluster_arrive_relaxed(SINTER_SHIM_SITE) {
  sinter_shim_calls->arrive_in_cluster(false, {file, line});
}
SINTER_DEVICE void barrier_cluster_arrive(SINTER_SHIM_SITE) {
  sinter_shim_calls->arrive_in_cluster(true, {file, line});
}
SINTER_DEVICE void barrier_cluster_wait(SINTER_SHIM_SITE) {
  sinter_shim_calls->wait_for_cluster({file, line});
}
template <int blocks>
SINTER_DEVICE void st_shared_cluster(float* own, int rank, float value, SINTER_SHIM_SITE) {
  if constexpr (blocks == 1)
    *own = value;
  else
    sinter_shim_calls->give(own, rank, value, {file, line});
}

}  // namespace sinter
