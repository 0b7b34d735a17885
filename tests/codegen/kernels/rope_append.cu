// n0 in [0, 4096]
// graph(%x0: bf16[n0, 5120], %x1: bf16[n0, 64], %x2: bf16[n0, 64], %x3: bf16[512, 1024], %x4: i32[n0]) -> (%v4, %v7) {
//   %v0 = slice %x0 {axis = 1, begin = 0, size = 4096} : bf16[n0, 4096]
//   %v1 = slice %x0 {axis = 1, begin = 4096, size = 1024} : bf16[n0, 1024]
//   %v2 = reshape %v0 : bf16[n0, 32, 128]
//   %v3 = reshape %v1 : bf16[n0, 8, 128]
//   %v4 = rope %v2, %x1, %x2 {rotary = 128, pairing = "half"} : bf16[n0, 32, 128]
//   %v5 = rope %v3, %x1, %x2 {rotary = 128, pairing = "half"} : bf16[n0, 8, 128]
//   %v6 = reshape %v5 : bf16[n0, 1024]
//   %v7 = kv_append %x3, %v6, %x4 : bf16[512, 1024]
// }
// launch: rows 1, items_per_row 1, symbolic_items 5120*n0, items_per_block 2048, threads 256,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits false, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
rope_append_c263c6d5(const bf16* __restrict__ x0, const bf16* __restrict__ x1, const bf16* __restrict__ x2, const bf16* __restrict__ x3, const int* __restrict__ x4, bf16* __restrict__ y0, bf16* __restrict__ y1, long long n0) {
  const long long item = blockIdx.x * 256ll + threadIdx.x;
  const long long end0 = n0 * 512;
  const long long end1 = end0 + n0 * 128;
  if (item < end0) {
    const int i = static_cast<int>(item * 8);
    const int a0 = i / 4096;
    const int a1 = i / 128 % 32;
    const int a2 = i % 128;
    float v0[8];
    load_chunk(v0, x0 + a0 * 5120ll + a1 * 128ll + a2);
    float v1[8];
    load_chunk(v1, x1 + a0 * 64ll + a2 + (a2 < 64 ? 0 : -64));
    float v3[8];
    load_chunk(v3, x0 + a0 * 5120ll + a1 * 128ll + a2 + (a2 < 64 ? 64 : -64));
    float v4[8];
    load_chunk(v4, x2 + a0 * 64ll + a2 + (a2 < 64 ? 0 : -64));
    float o0[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float v2 = round_bf16(math::mul(v0[e], v1[e]));
      const float v5 = round_bf16(math::mul(v3[e], v4[e]));
      const float v6 = round_bf16((a2 < 64 ? math::sub(v2, v5) : math::add(v2, v5)));
      o0[e] = v6;
    }
    store_chunk(y0 + i, o0);
  } else if (item < end1) {
    const int i = static_cast<int>((item - end0) * 8);
    const int a0 = i / 1024;
    const int a1 = i / 128 % 8;
    const int a2 = i % 128;
    float v7[8];
    load_chunk(v7, x0 + a0 * 5120ll + a1 * 128ll + a2 + 4096);
    float v8[8];
    load_chunk(v8, x1 + a0 * 64ll + a2 + (a2 < 64 ? 0 : -64));
    float v10[8];
    load_chunk(v10, x0 + a0 * 5120ll + a1 * 128ll + a2 + (a2 < 64 ? 4160 : 4032));
    float v11[8];
    load_chunk(v11, x2 + a0 * 64ll + a2 + (a2 < 64 ? 0 : -64));
    const int v14 = load(x4 + a0);
    float o1[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      const float v9 = round_bf16(math::mul(v7[e], v8[e]));
      const float v12 = round_bf16(math::mul(v10[e], v11[e]));
      const float v13 = round_bf16((a2 < 64 ? math::sub(v9, v12) : math::add(v9, v12)));
      o1[e] = v13;
    }
    store_chunk(y1 + a1 * 128ll + a2 + v14 * 1024ll, o1);
  }
}
