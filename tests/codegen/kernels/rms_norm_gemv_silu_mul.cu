// n0 in [0, 8]
// graph(%x0: bf16[n0, 4096], %x1: bf16[4096], %x2: bf16[22016, 4096]) -> (%v5) {
//   %v0 = rms_norm %x0, %x1 {eps = 0x1.4f8b588e368f1p-17} : bf16[n0, 4096]
//   %v1 = linear %v0, %x2 {order = gemv, splits = 1} : bf16[n0, 22016]
//   %v2 = slice %v1 {axis = 1, begin = 0, size = 11008} : bf16[n0, 11008]
//   %v3 = slice %v1 {axis = 1, begin = 11008, size = 11008} : bf16[n0, 11008]
//   %v4 = silu %v2 : bf16[n0, 11008]
//   %v5 = mul %v4, %v3 : bf16[n0, 11008]
// }
// launch: rows 132, items_per_row 1, symbolic_items 0, items_per_block 1, threads 512,
//   shared_bytes 230400, wanted_shared_bytes 10912*n0 + 135168, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits true, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"
#include "kernels/gemv/gemv.cuh"
using namespace sinter;

struct Config {
  using Element = bf16;
  using Matrix = DenseMatrix<bf16, 4096>;
  static constexpr int kLength = 4096;
  static constexpr int kRows = 22016;
  static constexpr int kUnits = 2;
  static constexpr int kStride = 11008;
  static constexpr int kSplits = 1;
  static constexpr int kTokens = 8;
  static constexpr int kBlocks = 132;
  static constexpr int kStageLength = 1024;
  static constexpr int kWarps = 16;
  static constexpr int kOperandBytes = 113664;
  static constexpr int kStages = 4;
  static constexpr bool kDirect = false;
};
using Product = Gemv<Config>;

extern "C" __global__ void __launch_bounds__(512, 2)
rms_norm_gemv_silu_mul_cee576b5(const bf16* x0, const bf16* x1, const bf16* x2, bf16* y0, long long n0) {
  griddepcontrol_launch_dependents();
  extern __shared__ __align__(128) unsigned char memory[];
  const int tokens = static_cast<int>(n0);
  Product product(memory, x2, tokens);
  product.start();
  griddepcontrol_wait();
  if (tokens == 0) return;
  const auto operand = product.operand();
  if (tokens == 1) {
    __shared__ float shared[16];
    const int thread = threadIdx.x;
    const long long row = 0;
    Lanes<Sum, 1> lanes0;
    Packed<bf16> k0[1];
    Packed<bf16> k1[1];
#pragma unroll
    for (int j = 0; j < 1; ++j) {
      const int i = 8 * (thread + 512 * j);
      load_chunk(k0[j], x0 + row * 4096 + i);
      load_chunk(k1[j], x1 + i);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v0 = math::mul(k0[j][e], k0[j][e]);
        lanes0.take(0, v0);
      }
    }
    product.fill();
    const float s0 = reduce_row<512>(lanes0, shared);
    const float v1 = math::div(s0, 0x1p+12f);
    const float v2 = math::add(v1, 0x1.4f8b58p-17f);
    const float v3 = math::rsqrt(v2);
#pragma unroll
    for (int j = 0; j < 1; ++j) {
      const int i = 8 * (thread + 512 * j);
      float o0[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v4 = math::mul(k0[j][e], v3);
        const float v5 = round_bf16(v4);
        o0[e] = math::mul(v5, k1[j][e]);
      }
      store_chunk(operand + row * 4096 + i, o0);
    }
  } else if (tokens > 1) {
    __shared__ float shared[128];
    const int thread = threadIdx.x % 64;
    const long long own_row = 0 * 8ll + threadIdx.x / 64;
    const bool live = own_row < n0;
    const long long row = live ? own_row : n0 - 1;
    Lanes<Sum, 8> lanes0;
    Packed<bf16> k0[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int i = 8 * (thread + 64 * j);
      load_chunk(k0[j], x0 + row * 4096 + i);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v0 = math::mul(k0[j][e], k0[j][e]);
        lanes0.take(j % 8, v0);
      }
    }
    product.fill();
    const float s0 = reduce_row<64>(lanes0, shared);
    const float v1 = math::div(s0, 0x1p+12f);
    const float v2 = math::add(v1, 0x1.4f8b58p-17f);
    const float v3 = math::rsqrt(v2);
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int i = 8 * (thread + 64 * j);
      float v6[8];
      load_chunk(v6, x1 + i);
      float o0[8];
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const float v4 = math::mul(k0[j][e], v3);
        const float v5 = round_bf16(v4);
        o0[e] = math::mul(v5, v6[e]);
      }
      if (live) store_chunk(operand + row * 4096 + i, o0);
    }
  }
  __syncthreads();
  const int thread = threadIdx.x, items = product.rows() * tokens;
  const auto x3 = product.sums();
  const auto compute = [&](int item, bool has_item, bool is_first) {
    const long long row = item / product.rows();
    const int matrix_row = product.row(item % product.rows());
    const bool has_result = matrix_row < 11008;
    const int i = has_result ? matrix_row : 0;
    constexpr int e = 0;
    if (is_first) {
      product.run();
    }
    if (has_item && has_result) {
      const float v0 = load(x3 + row * 22016 + i + e);
      const float v1 = round_bf16(v0);
      const float v2 = math::sigmoid(v1);
      const float v3 = math::mul(v1, v2);
      const float v4 = round_bf16(v3);
      const float v5 = load(x3 + row * 22016 + i + e + 11008);
      const float v6 = round_bf16(v5);
      store(y0 + row * 11008 + i + e, math::mul(v4, v6));
    }
  };
  compute(thread < items ? thread : 0, thread < items, true);
  for (int item = thread + 512; item < items; item += 512) compute(item, true, false);
}
