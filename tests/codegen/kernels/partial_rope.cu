// n0 in [0, 4096]
// graph(%x0: f16[n0, 7680], %x1: f16[n0, 10], %x2: f16[n0, 10]) -> (%v2) {
//   %v0 = slice %x0 {axis = 1, begin = 0, size = 2560} : f16[n0, 2560]
//   %v1 = reshape %v0 : f16[n0, 32, 80]
//   %v2 = rope %v1, %x1, %x2 {rotary = 20, pairing = "half"} : f16[n0, 32, 80]
// }
// launch: rows 1, items_per_row 1, symbolic_items 2560*n0, items_per_block 2048, threads 256,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits false, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
rope_86ee2aed(const f16* __restrict__ x0, const f16* __restrict__ x1, const f16* __restrict__ x2, f16* __restrict__ y0, long long n0) {
  const long long item = blockIdx.x * 256ll + threadIdx.x;
  const long long end0 = n0 * 320;
  if (item < end0) {
    const int i = static_cast<int>(item * 8);
    const int a0 = i / 2560;
    const int a1 = i / 80 % 32;
    const int a2 = i % 80;
    float v0[8];
    if (a2 < 24) {
      float v1[8];
      load_chunk(v1, x0 + a0 * 7680ll + a1 * 80ll + a2);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v2 = load(x1 + a0 * 10ll + (a2 + e < 10 ? a2 + e : at_most(a2 + e - 10, 9)));
        const float v3 = round_f16(math::mul(v1[e], v2));
        const float v4 = load(x0 + a0 * 7680ll + a1 * 80ll + a2 + e + (a2 + e < 10 ? 10 : -10));
        const float v5 = load(x2 + a0 * 10ll + (a2 + e < 10 ? a2 + e : at_most(a2 + e - 10, 9)));
        const float v6 = round_f16(math::mul(v4, v5));
        const float v7 = round_f16((a2 + e < 10 ? math::sub(v3, v6) : math::add(v3, v6)));
        v0[e] = (a2 + e < 20 ? v7 : v1[e]);
      }
    } else {
      float v8[8];
      load_chunk(v8, x0 + a0 * 7680ll + a1 * 80ll + a2);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        v0[e] = v8[e];
      }
    }
    store_chunk(y0 + i, v0);
  }
}
