// Roles of a block's warpgroups: some load tiles (producers), the others multiply (consumers).
#pragma once

#include "kernels/isa/setmaxnreg.cuh"

namespace sinter {

constexpr int kWarpgroupThreads = 128;

SINTER_DEVICE int thread_in_warpgroup() {
  return static_cast<int>(threadIdx.x) % kWarpgroupThreads;
}
// The number of the warpgroup in its block; the compiler sees that all lanes have the same.
SINTER_DEVICE int warpgroup_index() {
  return __shfl_sync(0xffffffffu, static_cast<int>(threadIdx.x) / kWarpgroupThreads, 0);
}

// The first of the two rows that a lane has of a product of 64 rows by its warpgroup; the other is
// 8 rows on.
SINTER_DEVICE int first_row_in_warpgroup() {
  const int thread = thread_in_warpgroup();
  return thread / 32 * 16 + thread % 32 / 4;
}

}  // namespace sinter
