// Sums of 64 rows of a gradient down each column, in the order of a reduce_sum down 64 rows
// (ir/reduction_order.h). A lane of that order has 8 neighbouring rows, from +0 on; lanes combine
// as a balanced tree over neighbours. A warp has the rows of two lanes.
#pragma once

#include "kernels/tile/sums/fragment.cuh"

namespace sinter {

// `gradient`: what a thread has of its warp's 16 rows and of 2 * count columns, as products leave
// it. It is rounded to T; then the warp's rows are summed to shared[warp][column].
template <typename T, int count>
SINTER_DEVICE void sum_rows_of_warp(const float (&gradient)[count], float* shared) {
  constexpr unsigned all = 0xffffffffu;
  static_assert(count % 8 == 0, "whole blocks of 16 columns");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  float* const sums = shared + thread / 32 * 2 * count + lane / 4 + lane % 4 / 2 * 8;
#pragma unroll
  for (int i = 0; i < count / 8; ++i) {
    float block[8];  // of 16 columns
#pragma unroll
    for (int k = 0; k < 8; ++k) block[k] = gradient[8 * i + k];
    Chunk rows;  // 8 neighbouring rows of a column
    transpose_chunk(rows, static_cast<const T*>(nullptr), block, lane);
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < 8; ++e) sum = math::add(sum, rows[e]);
    sum = math::add(sum, __shfl_xor_sync(all, sum, 1));
    if (lane % 2 == 0) sums[16 * i] = sum;
  }
}

// Stores the sums of a warpgroup's columns, the first `width` of `padded`.
template <int width, int padded>
SINTER_DEVICE void store_sums_of_warps(const float* shared, float* to) {
  static_assert(padded <= 128, "a thread of the warpgroup has a column");
  const int thread = static_cast<int>(threadIdx.x), column = thread % 128;
  const float* const sums = shared + thread / 128 * 4 * padded + column;
  if (column < width)
    to[column] =
        math::add(math::add(sums[0], sums[padded]), math::add(sums[2 * padded], sums[3 * padded]));
}

}  // namespace sinter
