// n0 in [0, 4096]
// graph(%x0: f16[50257, 1600], %x1: f16[1024, 1600], %x2: i32[n0], %x3: i32[n0], %x4: f16[1600], %x5: f16[1600]) -> (%v2, %v3) {
//   %v0 = embedding %x0, %x2 : f16[n0, 1600]
//   %v1 = embedding %x1, %x3 : f16[n0, 1600]
//   %v2 = add %v0, %v1 : f16[n0, 1600]
//   %v3 = layer_norm %v2, %x4, %x5 {eps = 0x1.4f8b588e368f1p-17} : f16[n0, 1600]
// }
// launch: rows n0, items_per_row 1, symbolic_items 0, items_per_block 2, threads 128,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits false, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(128)
embedding_add_layer_norm_b7c2ab4e(const f16* __restrict__ x0, const f16* __restrict__ x1, const int* __restrict__ x2, const int* __restrict__ x3, const f16* __restrict__ x4, const f16* __restrict__ x5, f16* __restrict__ y0, f16* __restrict__ y1, long long n0) {
  __shared__ float shared[32];
  const int thread = threadIdx.x % 64;
  const long long own_row = blockIdx.x * 2ll + threadIdx.x / 64;
  const bool live = own_row < n0;
  const long long row = live ? own_row : n0 - 1;
  Lanes<Sum, 4> lanes0;
  const int v0 = load(x2 + row);
  const int v2 = load(x3 + row);
  Packed<f16> k0[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int i = 8 * (thread + 64 * j);
    if (i < 1600) {
      float v1[8];
      load_chunk(v1, x0 + i + v0 * 1600ll);
      float v3[8];
      load_chunk(v3, x1 + i + v2 * 1600ll);
      float v4[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        v4[e] = round_f16(math::add(v1[e], v3[e]));
        lanes0.take(j % 4, v4[e]);
      }
      pack_chunk(k0[j], v4);
      if (live) store_chunk(y0 + row * 1600 + i, v4);
    }
  }
  const float s0 = reduce_row<64>(lanes0, shared);
  Lanes<Sum, 4> lanes1;
  const float v5 = math::div(s0, 0x1.9p+10f);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int i = 8 * (thread + 64 * j);
    if (i < 1600) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v6 = math::sub(k0[j][e], v5);
        const float v7 = math::mul(v6, v6);
        lanes1.take(j % 4, v7);
      }
    }
  }
  const float s1 = reduce_row<64>(lanes1, shared + 16);
  const float v9 = math::div(s1, 0x1.9p+10f);
  const float v10 = math::add(v9, 0x1.4f8b58p-17f);
  const float v11 = math::rsqrt(v10);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int i = 8 * (thread + 64 * j);
    if (i < 1600) {
      float v13[8];
      load_chunk(v13, x4 + i);
      float v15[8];
      load_chunk(v15, x5 + i);
      float o1[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v8 = math::sub(k0[j][e], v5);
        const float v12 = math::mul(v8, v11);
        const float v14 = math::mul(v12, v13[e]);
        const float v16 = math::add(v14, v15[e]);
        o1[e] = v16;
      }
      if (live) store_chunk(y1 + row * 1600 + i, o1);
    }
  }
}
