// Sums of 64 rows of a gradient down each column, in the order of a reduce_sum down 64 rows
// (ir/reduction_order.h). A lane of that order has 8 neighbouring rows, from +0 on; lanes combine
// as a balanced tree over neighbours. A warp has the rows of two lanes.
#pragma once

#include "kernels/isa/bar.cuh"
#include "kernels/tile/fragment.cuh"

namespace sinter {

constexpr int kSumsBarrier = 1;  // of the threads that multiply

// `gradient`: what a thread has of its warpgroup's 64 rows and of `width` columns, as products
// leave it. It is rounded to T before it is summed. `shared`: 4 * 2 * count floats for each
// warpgroup. `to`: the sums of the columns; null where the rows are not there. All `multiplying`
// threads call it.
template <typename T, int width, int multiplying, int count>
SINTER_DEVICE void store_row_sums(const float (&gradient)[count], float* shared, float* to) {
  constexpr unsigned all = 0xffffffffu;
  constexpr int padded = 2 * count;
  static_assert(padded % 16 == 0 && padded <= 128, "a thread of the warpgroup has a column");
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  bar_sync(kSumsBarrier, multiplying);  // nobody reads what was in shared memory
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
    if (lane % 2 == 0) shared[warp * padded + 16 * i + lane / 4 + lane % 4 / 2 * 8] = sum;
  }
  bar_sync(kSumsBarrier, multiplying);
  const int column = thread % 128;
  if (column >= width || to == nullptr) return;
  const float* sums = shared + warp / 4 * 4 * padded + column;
  to[column] =
      math::add(math::add(sums[0], sums[padded]), math::add(sums[2 * padded], sums[3 * padded]));
}

}  // namespace sinter
