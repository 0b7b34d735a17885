// n0 in [0, 4096]
// n1 in [0, 65536]
// graph(%x0: f32[n0, 16, n1]) -> (%v0) {
//   %v0 = softmax %x0 : f32[n0, 16, n1]
// }
// launch: rows 16*n0, items_per_row 1, symbolic_items 0, items_per_block 8, threads 256,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits false, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
softmax_b30f09d0(const float* __restrict__ x0, float* __restrict__ y0, long long n0, long long n1) {
  const int thread = threadIdx.x % 32;
  const long long own_row = blockIdx.x * 8ll + threadIdx.x / 32;
  const bool live = own_row < (n0 * 16);
  const long long row = live ? own_row : (n0 * 16) - 1;
  Lanes<Max, 8> lanes0;
  for (int first = 8 * thread, end = n1; first < end; first += 2048) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int i = first + 256 * j;
      if (i < end) {
        const int valid = n1 - i < 8 ? static_cast<int>(n1 - i) : 8;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          if (e < valid) {
            const float v0 = load(x0 + row * n1 + i + e);
            lanes0.take(j, v0);
          }
        }
      }
    }
  }
  const float s0 = reduce_row<32>(lanes0, nullptr);
  Lanes<Sum, 8> lanes1;
  for (int first = 8 * thread, end = n1; first < end; first += 2048) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int i = first + 256 * j;
      if (i < end) {
        const int valid = n1 - i < 8 ? static_cast<int>(n1 - i) : 8;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
          if (e < valid) {
            const float v1 = load(x0 + row * n1 + i + e);
            const float v2 = math::sub(v1, s0);
            const float v3 = math::exp_neg_abs(v2);
            lanes1.take(j, v3);
          }
        }
      }
    }
  }
  const float s1 = reduce_row<32>(lanes1, nullptr);
  const float v7 = math::div(0x1p+0f, s1);
  for (int i = 8 * thread, end = n1; i < end; i += 256) {
    const int valid = n1 - i < 8 ? static_cast<int>(n1 - i) : 8;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e < valid) {
        const float v4 = load(x0 + row * n1 + i + e);
        const float v5 = math::sub(v4, s0);
        const float v6 = math::exp_neg_abs(v5);
        const float v8 = math::mul(v6, v7);
        if (live) store(y0 + row * n1 + i + e, v8);
      }
    }
  }
}
