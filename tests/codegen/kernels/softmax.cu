// n0 in [0, 4096]
// n1 in [0, 65536]
// graph(%x0: f32[n0, 16, n1]) -> (%v0) {
//   %v0 = softmax %x0 : f32[n0, 16, n1]
// }
#include "sinter/reduce.cuh"
#include "sinter/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256)
softmax_dd388678(const float* __restrict__ x0, float* __restrict__ y0, long long n0, long long n1) {
  __shared__ float shared[16];
  const int thread = threadIdx.x;
  const long long row = blockIdx.x;
  Lanes<Max, 1> lanes0;
  for (int i = 8 * thread; i < n1; i += 2048) {
    const int valid = n1 - i < 8 ? static_cast<int>(n1 - i) : 8;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e < valid) {
        const float v0 = load(x0 + row * n1 + i + e);
        lanes0.take(0, v0);
      }
    }
  }
  const float s0 = reduce_row<256>(lanes0, shared);
  Lanes<Sum, 1> lanes1;
  for (int i = 8 * thread; i < n1; i += 2048) {
    const int valid = n1 - i < 8 ? static_cast<int>(n1 - i) : 8;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e < valid) {
        const float v1 = load(x0 + row * n1 + i + e);
        const float v2 = math::sub(v1, s0);
        const float v3 = math::exp(v2);
        lanes1.take(0, v3);
      }
    }
  }
  const float s1 = reduce_row<256>(lanes1, shared + 8);
  const float v7 = math::div(0x1p+0f, s1);
  for (int i = 8 * thread; i < n1; i += 2048) {
    const int valid = n1 - i < 8 ? static_cast<int>(n1 - i) : 8;
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      if (e < valid) {
        const float v4 = load(x0 + row * n1 + i + e);
        const float v5 = math::sub(v4, s0);
        const float v6 = math::exp(v5);
        const float v8 = math::mul(v6, v7);
        store(y0 + row * n1 + i + e, v8);
      }
    }
  }
}
