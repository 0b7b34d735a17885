// The device code of product_order.cpp: a product of tensor cores that adds in ascending order of
// K, its check against float64, random operands, and a comparison of bits.
#pragma once

namespace sinter {

inline constexpr const char* kProductOrderKernels = R"(
#include "kernels/tile/layout.h"
#include "kernels/isa/wgmma.cuh"
using namespace sinter;

// C[m, n] = sum of A[m, k] B[n, k]: a warpgroup computes 64 rows of `columns` columns with one
// float32 accumulator for each element, by wgmma.m64nNk16 in ascending order of K. k is a multiple
// of 8; a tile is filled up with zeros.
template <int columns, typename T, typename Out>
SINTER_DEVICE void ordered_product(const T* a, const T* b, Out* c, int m, int n, int k) {
  constexpr int kDepth = 64, kRowBytes = tile_panel_row(kDepth);
  __shared__ __align__(1024) unsigned char a_tile[tile_bytes(64, kDepth)];
  __shared__ __align__(1024) unsigned char b_tile[tile_bytes(columns, kDepth)];
  const int row_tiles = (m + 63) / 64, thread = static_cast<int>(threadIdx.x);
  const int first_row = static_cast<int>(blockIdx.x) % row_tiles * 64;
  const int first_column = static_cast<int>(blockIdx.x) / row_tiles * columns;
  const auto load_tile = [&](unsigned char* tile, const T* from, int first, int lines, int end,
                             int at) {
    for (int i = thread; i < lines * 8; i += 128) {
      const int line = i / 8, element = at + i % 8 * 8;
      uint4 words = {0, 0, 0, 0};
      if (first + line < end && element < k)
        words = *reinterpret_cast<const uint4*>(from + static_cast<long long>(first + line) * k +
                                                element);
      *reinterpret_cast<uint4*>(tile + tile_offset(lines, kDepth, line, i % 8)) = words;
    }
  };
  float sums[columns / 2];
#pragma unroll
  for (int i = 0; i < columns / 2; ++i) sums[i] = 0.0f;
#pragma unroll 1
  for (int at = 0; at < k; at += kDepth) {
    load_tile(a_tile, a, first_row, 64, m, at);
    load_tile(b_tile, b, first_column, columns, n, at);
    fence_proxy_async();
    __syncthreads();
    const MatrixDescriptor rows = matrix_descriptor<kRowBytes>(a_tile, 8 * kRowBytes, 16);
    const MatrixDescriptor lines = matrix_descriptor<kRowBytes>(b_tile, 8 * kRowBytes, 16);
    wgmma_fence(sums);
#pragma unroll
    for (int step = 0; step < kDepth; step += 16)
      Wgmma<columns, T>::mma_async_ss(sums, rows.advanced(2 * step), lines.advanced(2 * step),
                                             true);
    wgmma_commit_group();
    wgmma_wait_group<0>(sums);
    __syncthreads();
  }
  const int row = first_row + thread / 32 * 16 + thread % 32 / 4;
#pragma unroll
  for (int i = 0; i < columns / 2; ++i) {
    const int r = row + i % 4 / 2 * 8, column = first_column + i / 4 * 8 + 2 * (thread % 4) + i % 2;
    if (r < m && column < n) store(c + static_cast<long long>(r) * n + column, sums[i]);
  }
}

#define ORDERED(columns, T, Out)                                       \
  extern "C" __global__ void __launch_bounds__(128)                    \
  ordered_##columns##_##T##_##Out(const T* a, const T* b, Out* c, int m, int n, int k) { \
    ordered_product<columns>(a, b, c, m, n, k);                        \
  }
#define ORDERED_OF(T) \
  ORDERED(64, T, float) ORDERED(64, T, T) ORDERED(256, T, float) ORDERED(256, T, T)
ORDERED_OF(f16)
ORDERED_OF(bf16)

SINTER_DEVICE unsigned mixed(unsigned long long x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return static_cast<unsigned>((x ^ x >> 31) >> 32);
}
// A random sign times 2^u, u uniform in [low, high).
template <typename T>
SINTER_DEVICE void fill(T* out, long long count, float low, float high, unsigned seed) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const unsigned bits = mixed((static_cast<unsigned long long>(seed) << 40) + i + 1);
    const float x = exp2f(low + (high - low) * static_cast<float>(bits >> 8) * 0x1p-24f);
    store(out + i, bits & 1 ? -x : x);
  }
}
extern "C" __global__ void fill_f16(f16* out, long long count, float low, float high,
                                    unsigned seed) {
  fill(out, count, low, high, seed);
}
extern "C" __global__ void fill_bf16(bf16* out, long long count, float low, float high,
                                     unsigned seed) {
  fill(out, count, low, high, seed);
}

// result[0] += elements with other bits, result[1] = bits of the largest difference.
template <typename Out>
SINTER_DEVICE void compare(const Out* x, const Out* y, long long count, unsigned* result) {
  const long long step = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    unsigned char differs = 0;
    for (int byte = 0; byte < static_cast<int>(sizeof(Out)); ++byte)
      differs |= reinterpret_cast<const unsigned char*>(x + i)[byte] ^
                 reinterpret_cast<const unsigned char*>(y + i)[byte];
    if (!differs) continue;
    atomicAdd(result, 1u);
    const float difference = fabsf(load(x + i) - load(y + i));
    // A NaN has the distance infinity.
    atomicMax(result + 1, difference <= 3.4e38f ? __float_as_uint(difference) : 0x7f800000u);
  }
}
// Adds to result[0] the elements, every `every`th, that are further from the float64 sum than
// rounding explains: an addition may lose 2^-23 of what is summed so far, and as much where terms
// are aligned to a larger one; the result is rounded once (half_ulp, or 2^-25 in f16).
template <typename T, typename Out>
SINTER_DEVICE void check(const T* a, const T* b, const Out* c, int m, int n, int k, int every,
                         float half_ulp, unsigned* result) {
  const long long count = static_cast<long long>(m) * n;
  const long long i = (static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x) * every;
  if (i >= count) return;
  const T* const row = a + i / n * k;
  const T* const line = b + i % n * k;
  double exact = 0, magnitude = 0;
  for (int p = 0; p < k; ++p) {
    const double term = static_cast<double>(load(row + p)) * static_cast<double>(load(line + p));
    exact += term;
    magnitude += fabs(term);
  }
  const double allowed = (k + 2) * 0x1p-22 * magnitude + half_ulp * fabs(exact) + 0x1p-25;
  if (!(fabs(static_cast<double>(load(c + i)) - exact) <= allowed)) atomicAdd(result, 1u);
}
#define ABOUT(T)                                                                                \
  extern "C" __global__ void compare_##T(const T* x, const T* y, long long count,               \
                                         unsigned* result) {                                    \
    compare(x, y, count, result);                                                               \
  }
#define CHECK(T, Out)                                                                           \
  extern "C" __global__ void check_##T##_##Out(const T* a, const T* b, const Out* c, int m,     \
                                               int n, int k, int every, float half_ulp,         \
                                               unsigned* result) {                              \
    check(a, b, c, m, n, k, every, half_ulp, result);                                           \
  }
ABOUT(float)
ABOUT(f16)
ABOUT(bf16)
CHECK(f16, float)
CHECK(f16, f16)
CHECK(bf16, float)
CHECK(bf16, bf16)
)";

}  // namespace sinter
