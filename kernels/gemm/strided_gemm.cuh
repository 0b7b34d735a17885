// C[m, n] = round(activation(sum over k of A[m, k] * B[k, n] + bias[n] + residual[m, n])) for any
// strides: the products that the library does not take. An element is summed in float32 from +0 by
// one fused multiply-add for each k, upwards; then the rest is done in this order, then it is
// rounded. So its bits depend on its row of A and its column of B alone, not on where in a tile it
// stands.
#pragma once

#include "ir/activation.h"
#include "kernels/common/launch.cuh"
#include "kernels/common/vector.cuh"

namespace sinter {

// A block has 256 threads and makes a tile of 64 by 64, 16 steps of k at a time; a thread has the
// rows ty + 16 i and the columns tx + 16 j.
constexpr int kGemmThreads = 256, kGemmTile = 64, kGemmDepth = 16;
constexpr int kGemmSide = 16;                     // threads along a side of the tile
constexpr int kGemmEach = kGemmTile / kGemmSide;  // elements of a thread along a side
// Floats of a line in shared memory: stores along k go to different banks.
constexpr int kGemmLine = kGemmTile + 1;
constexpr int kGemmShared = 2 * kGemmDepth * kGemmLine;  // floats of a block

// As runtime/cuda/strided_gemm.h passes it. Strides in elements: row, column, copy.
struct GemmShape {
  long long m, n, k;
  long long a[3], b[3], c[3];
};

// Lines `line0 ..` of an operand, kGemmDepth deep from `depth0`, to out[depth][line]; zeros outside
// its lines and depths. Threads follow the axis with the smaller stride.
template <typename T>
SINTER_DEVICE void load_gemm_tile(float* out, const T* in, long long line0, long long lines,
                                  long long line_stride, long long depth0, long long depths,
                                  long long depth_stride) {
  const bool deep = depth_stride < line_stride;
  for (int i = threadIdx.x; i < kGemmTile * kGemmDepth; i += kGemmThreads) {
    const int line = deep ? i / kGemmDepth : i % kGemmTile;
    const int depth = deep ? i % kGemmDepth : i / kGemmTile;
    float x = 0.0f;
    if (line0 + line < lines && depth0 + depth < depths)
      x = load(in + (line0 + line) * line_stride + (depth0 + depth) * depth_stride);
    out[depth * kGemmLine + line] = x;
  }
}

// `bias` is null or has n elements, `residual` is null or laid out as C. `shared` holds kGemmShared
// floats.
template <Activation activation, typename A, typename B, typename C, typename Bias>
SINTER_DEVICE void strided_gemm(const A* a, const B* b, C* c, const Bias* bias, const C* residual,
                                const GemmShape& shape, float* shared) {
  const long long tiles_m = (shape.m + kGemmTile - 1) / kGemmTile;
  const long long tiles_n = (shape.n + kGemmTile - 1) / kGemmTile;
  const long long copy = blockIdx.x / (tiles_m * tiles_n);
  const long long row0 = blockIdx.x / tiles_n % tiles_m * kGemmTile;
  const long long column0 = blockIdx.x % tiles_n * kGemmTile;
  a += copy * shape.a[2];
  b += copy * shape.b[2];
  c += copy * shape.c[2];
  if (residual != nullptr) residual += copy * shape.c[2];
  const int ty = threadIdx.x / kGemmSide, tx = threadIdx.x % kGemmSide;
  float* a_tile = shared;
  float* b_tile = shared + kGemmDepth * kGemmLine;

  float sum[kGemmEach][kGemmEach];
#pragma unroll
  for (int i = 0; i < kGemmEach; ++i)
#pragma unroll
    for (int j = 0; j < kGemmEach; ++j) sum[i][j] = 0.0f;

  for (long long k0 = 0; k0 < shape.k; k0 += kGemmDepth) {
    load_gemm_tile(a_tile, a, row0, shape.m, shape.a[0], k0, shape.k, shape.a[1]);
    load_gemm_tile(b_tile, b, column0, shape.n, shape.b[1], k0, shape.k, shape.b[0]);
    __syncthreads();
    // A product with a zero after the last k would make a sum of -0 +0.
    const int depths = shape.k - k0 < kGemmDepth ? static_cast<int>(shape.k - k0) : kGemmDepth;
#pragma unroll 4
    for (int depth = 0; depth < depths; ++depth) {
      float x[kGemmEach], y[kGemmEach];
#pragma unroll
      for (int i = 0; i < kGemmEach; ++i) {
        x[i] = a_tile[depth * kGemmLine + ty + kGemmSide * i];
        y[i] = b_tile[depth * kGemmLine + tx + kGemmSide * i];
      }
#pragma unroll
      for (int i = 0; i < kGemmEach; ++i)
#pragma unroll
        for (int j = 0; j < kGemmEach; ++j) sum[i][j] = math::fma(x[i], y[j], sum[i][j]);
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kGemmEach; ++i) {
#pragma unroll
    for (int j = 0; j < kGemmEach; ++j) {
      const long long row = row0 + ty + kGemmSide * i, column = column0 + tx + kGemmSide * j;
      if (row >= shape.m || column >= shape.n) continue;
      const long long at = row * shape.c[0] + column * shape.c[1];
      float x = bias != nullptr ? math::add(sum[i][j], load(bias + column)) : sum[i][j];
      if (residual != nullptr) x = math::add(x, load(residual + at));
      store(c + at, activated(activation, x));
    }
  }
}

}  // namespace sinter
