// Sums down columns beside a walk over rows, in the order of ir/column_runs.h.
#pragma once

#include "kernels/common/column_lane.cuh"
#include "kernels/common/vector.cuh"

namespace sinter {

// The row that a lane of `lanes` in all walks at a step.
template <int lanes>
SINTER_DEVICE long long row_of_lane(long long lane, int step) {
  return 8 * (lane + static_cast<long long>(lanes) * (step / 8)) + step % 8;
}

// Joins the sums of a run's lanes, whose rows lie side by side in the block, each with `threads`
// threads of which the first `owners` have columns, and stores them. Chunk j of a thread is columns
// 8 * (thread + owners * j) and the next 7. Every thread of the block calls it; `shared` holds
// lanes / 2 rows of `width` floats.
template <int threads, int owners, int lanes, int width, int chunks>
SINTER_DEVICE void store_run(ColumnLane<Sum> (&sums)[chunks], float* shared, float* to) {
  const int thread = static_cast<int>(threadIdx.x) % threads;
  const int lane = static_cast<int>(threadIdx.x) / threads;
  const int first = thread < owners ? 8 * thread : width;  // others have no column
#pragma unroll
  for (int stride = 1; stride < lanes; stride *= 2) {
    const int place = lane % (2 * stride);
    float* pair = shared + lane / (2 * stride) * width;
    __syncthreads();  // all have read what was in shared memory
    if (place == stride) {
#pragma unroll
      for (int j = 0; j < chunks; ++j)
        if (first + 8 * owners * j < width) {
#pragma unroll
          for (int e = 0; e < 8; ++e) pair[first + 8 * owners * j + e] = sums[j].value[e];
        }
    }
    __syncthreads();
    if (place == 0) {
#pragma unroll
      for (int j = 0; j < chunks; ++j)
        if (first + 8 * owners * j < width) {
#pragma unroll
          for (int e = 0; e < 8; ++e) sums[j].take(e, pair[first + 8 * owners * j + e]);
        }
    }
  }
  if (lane != 0) return;
#pragma unroll
  for (int j = 0; j < chunks; ++j)
    if (first + 8 * owners * j < width) store_chunk(to + first + 8 * owners * j, sums[j].value);
}

}  // namespace sinter
