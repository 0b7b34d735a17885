// n0 in [0, 4096]
// graph(%x0: f16[50257, 1600], %x1: f16[1024, 1600], %x2: i32[n0], %x3: i32[n0], %x4: f16[1600], %x5: f16[1600]) -> (%v2, %v3) {
//   %v0 = embedding %x0, %x2 : f16[n0, 1600]
//   %v1 = embedding %x1, %x3 : f16[n0, 1600]
//   %v2 = add %v0, %v1 : f16[n0, 1600]
//   %v3 = layer_norm %v2, %x4, %x5 {eps = 0x1.4f8b588e368f1p-17} : f16[n0, 1600]
// }
#include "sinter/reduce.cuh"
#include "sinter/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
embedding_add_layer_norm_5e08b17c(const f16* __restrict__ x0, const f16* __restrict__ x1, const int* __restrict__ x2, const int* __restrict__ x3, const f16* __restrict__ x4, const f16* __restrict__ x5, f16* __restrict__ y0, f16* __restrict__ y1, long long n0) {
  __shared__ float shared[16];
  const int thread = threadIdx.x;
  const long long row = blockIdx.x;
  Lanes<Sum, 1> lanes0;
  const int v0 = load(x2 + row);
  const int v2 = load(x3 + row);
  float k0[1][8];
  float k2[1][8];
  float k3[1][8];
#pragma unroll
  for (int j = 0; j < 1; ++j) {
    const int i = 8 * (thread + 256 * j);
    if (i < 1600) {
      float v1[8];
      load_chunk(v1, x0 + i + v0 * 1600ll);
      float v3[8];
      load_chunk(v3, x1 + i + v2 * 1600ll);
      load_chunk(k2[j], x4 + i);
      load_chunk(k3[j], x5 + i);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        k0[j][e] = round_f16(math::add(v1[e], v3[e]));
        lanes0.take(0, k0[j][e]);
      }
      store_chunk(y0 + row * 1600 + i, k0[j]);
    }
  }
  const float s0 = reduce_row<256>(lanes0, shared);
  Lanes<Sum, 1> lanes1;
  const float v4 = math::div(s0, 0x1.9p+10f);
  float k1[1][8];
#pragma unroll
  for (int j = 0; j < 1; ++j) {
    const int i = 8 * (thread + 256 * j);
    if (i < 1600) {
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        k1[j][e] = math::sub(k0[j][e], v4);
        const float v5 = math::mul(k1[j][e], k1[j][e]);
        lanes1.take(0, v5);
      }
    }
  }
  const float s1 = reduce_row<256>(lanes1, shared + 8);
  const float v6 = math::div(s1, 0x1.9p+10f);
  const float v7 = math::add(v6, 0x1.4f8b58p-17f);
  const float v8 = math::div(1.0f, math::sqrt(v7));
#pragma unroll
  for (int j = 0; j < 1; ++j) {
    const int i = 8 * (thread + 256 * j);
    if (i < 1600) {
      float o1[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v9 = math::mul(k1[j][e], v8);
        const float v10 = math::mul(v9, k2[j][e]);
        const float v11 = math::add(v10, k3[j][e]);
        o1[e] = v11;
      }
      store_chunk(y1 + row * 1600 + i, o1);
    }
  }
}
