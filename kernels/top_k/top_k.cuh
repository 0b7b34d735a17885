// top_k: a warp has a row, and each lane the keys of every 32nd element in registers. In each of
// `count` rounds the warp finds the largest key left, of equal ones the one of the least position.
#pragma once

#include "kernels/common/position_key.cuh"
#include "kernels/common/vector.cuh"
#include "kernels/top_k/order.h"

namespace sinter {

// The rows of x, of `columns` elements, are `stride` apart; chosen: [rows, count].
template <int columns, int count, typename T>
SINTER_DEVICE void top_k(const T* x, long long stride, long long rows, int* chosen) {
  static_assert(columns <= kMaxTopKColumns && count <= columns);
  constexpr int kKeys = (columns + 31) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const long long row =
      static_cast<long long>(blockIdx.x) * (kTopKThreads / 32) + static_cast<int>(threadIdx.x) / 32;
  if (row >= rows) return;
  math::u64 keys[kKeys];
#pragma unroll
  for (int i = 0; i < kKeys; ++i) {
    const int at = 32 * i + lane;
    keys[i] = 0;
    if (at < columns) keys[i] = position_key(load(x + row * stride + at), at);
  }
#pragma unroll 1
  for (int round = 0; round < count; ++round) {
    math::u64 largest = 0;
#pragma unroll
    for (int i = 0; i < kKeys; ++i) largest = keys[i] > largest ? keys[i] : largest;
#pragma unroll
    for (int stride_of_lanes = 16; stride_of_lanes > 0; stride_of_lanes /= 2) {
      const math::u64 other = __shfl_xor_sync(0xffffffffu, largest, stride_of_lanes);
      largest = other > largest ? other : largest;
    }
#pragma unroll
    for (int i = 0; i < kKeys; ++i) keys[i] = keys[i] == largest ? 0 : keys[i];
    if (lane == 0) chosen[row * count + round] = key_position(largest);
  }
}

}  // namespace sinter
