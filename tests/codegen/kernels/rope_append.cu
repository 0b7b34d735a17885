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
#include "kernels/common/launch.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
rope_append_5b6a6035(const bf16* __restrict__ x0, const bf16* __restrict__ x1, const bf16* __restrict__ x2, const bf16* __restrict__ x3, const int* __restrict__ x4, bf16* __restrict__ y0, bf16* __restrict__ y1, long long n0) {
  const long long item = blockIdx.x * 256ll + threadIdx.x;
  const long long end0 = n0 * 512;
  const long long end1 = end0 + n0 * 128;
  if (item < end0) {
    const int i = static_cast<int>(item * 8);
    const int a0 = i / 4096;
    const int a1 = i / 128 % 32;
    const int a2 = i % 128;
    float v0[8];
    if (a2 < 64) {
      float v1[8];
      load_chunk(v1, x0 + a0 * 5120ll + a1 * 128ll + a2);
      float v2[8];
      load_chunk(v2, x1 + a0 * 64ll + a2);
      float v4[8];
      load_chunk(v4, x0 + a0 * 5120ll + a1 * 128ll + a2 + 64);
      float v5[8];
      load_chunk(v5, x2 + a0 * 64ll + a2);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v3 = round_bf16(math::mul(v1[e], v2[e]));
        const float v6 = round_bf16(math::mul(v4[e], v5[e]));
        const float v7 = round_bf16(math::sub(v3, v6));
        v0[e] = v7;
      }
    } else {
      float v8[8];
      load_chunk(v8, x0 + a0 * 5120ll + a1 * 128ll + a2);
      float v9[8];
      load_chunk(v9, x1 + a0 * 64ll + a2 - 64);
      float v11[8];
      load_chunk(v11, x0 + a0 * 5120ll + a1 * 128ll + a2 - 64);
      float v12[8];
      load_chunk(v12, x2 + a0 * 64ll + a2 - 64);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v10 = round_bf16(math::mul(v8[e], v9[e]));
        const float v13 = round_bf16(math::mul(v11[e], v12[e]));
        const float v14 = round_bf16(math::add(v10, v13));
        v0[e] = v14;
      }
    }
    store_chunk(y0 + i, v0);
  } else if (item < end1) {
    const int i = static_cast<int>((item - end0) * 8);
    const int a0 = i / 1024;
    const int a1 = i / 128 % 8;
    const int a2 = i % 128;
    float v15[8];
    if (a2 < 64) {
      float v16[8];
      load_chunk(v16, x0 + a0 * 5120ll + a1 * 128ll + a2 + 4096);
      float v17[8];
      load_chunk(v17, x1 + a0 * 64ll + a2);
      float v19[8];
      load_chunk(v19, x0 + a0 * 5120ll + a1 * 128ll + a2 + 4160);
      float v20[8];
      load_chunk(v20, x2 + a0 * 64ll + a2);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v18 = round_bf16(math::mul(v16[e], v17[e]));
        const float v21 = round_bf16(math::mul(v19[e], v20[e]));
        const float v22 = round_bf16(math::sub(v18, v21));
        v15[e] = v22;
      }
    } else {
      float v23[8];
      load_chunk(v23, x0 + a0 * 5120ll + a1 * 128ll + a2 + 4096);
      float v24[8];
      load_chunk(v24, x1 + a0 * 64ll + a2 - 64);
      float v26[8];
      load_chunk(v26, x0 + a0 * 5120ll + a1 * 128ll + a2 + 4032);
      float v27[8];
      load_chunk(v27, x2 + a0 * 64ll + a2 - 64);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v25 = round_bf16(math::mul(v23[e], v24[e]));
        const float v28 = round_bf16(math::mul(v26[e], v27[e]));
        const float v29 = round_bf16(math::add(v25, v28));
        v15[e] = v29;
      }
    }
    const int v30 = load(x4 + a0);
    store_chunk(y1 + a1 * 128ll + a2 + v30 * 1024ll, v15);
  }
}
