// What gemv.cuh computes with: chunks of matrix and operand, products of tensor cores, the
// operand while it is written and the sums while they are read.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

// Eight elements, from shared memory or another place that the compiler sees.
template <typename T>
SINTER_DEVICE void read_chunk(float (&out)[8], const T* p) {
  widen(out, p, *reinterpret_cast<const uint4*>(p));
}
SINTER_DEVICE void read_chunk(float (&out)[8], const float* p) {
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    const float4 words = reinterpret_cast<const float4*>(p)[k];
    out[4 * k] = words.x;
    out[4 * k + 1] = words.y;
    out[4 * k + 2] = words.z;
    out[4 * k + 3] = words.w;
  }
}

#if SINTER_HAS_MMA
#ifdef __CUDACC_RTC__
// sums += a b: 16 rows by 16 elements, 16 elements by 8 tokens (mma.m16n8k16).
SINTER_DEVICE void multiply_tile(float (&sums)[4], const f16*, unsigned a0, unsigned a1,
                                 unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
SINTER_DEVICE void multiply_tile(float (&sums)[4], const bf16*, unsigned a0, unsigned a1,
                                 unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
#else
// The same with elements where mma.m16n8k16 has them: the CPU of the tests adds in an order of its
// own.
template <typename T>
SINTER_DEVICE void multiply_tile(float (&sums)[4], const T* p, unsigned a0, unsigned a1,
                                 unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  constexpr unsigned all = 0xffffffffu;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
  for (int q = 0; q < 4; ++q) {
    unsigned own[4];
    for (int i = 0; i < 4; ++i) own[i] = __shfl_sync(all, a[i], lane / 4 * 4 + q);
    for (int token = 0; token < 2; ++token) {
      for (int half = 0; half < 2; ++half) {
        const unsigned other = __shfl_sync(all, b[half], (2 * (lane % 4) + token) * 4 + q);
        for (int row = 0; row < 2; ++row) {
          const unsigned pair = own[2 * half + row];
          sums[2 * row + token] += low_half(p, pair & 0xffffu) * low_half(p, other & 0xffffu);
          sums[2 * row + token] += low_half(p, pair >> 16) * low_half(p, other >> 16);
        }
      }
    }
  }
}
#endif
#endif

// The operand in shared memory, for the code that writes its rows.
template <typename T>
struct SharedRows {
  T* at;
  SINTER_DEVICE SharedRows operator+(long long n) const { return {at + n}; }
};
template <typename T>
SINTER_DEVICE void store(SharedRows<T> p, float x) {
  store(p.at, x);
}
template <typename T>
SINTER_DEVICE void store_chunk(SharedRows<T> p, const float (&in)[8]) {
  if constexpr (sizeof(T) == 2) {
    *reinterpret_cast<uint4*>(p.at) = narrow(p.at, in);
  } else {
#pragma unroll
    for (int k = 0; k < 2; ++k)
      reinterpret_cast<float4*>(p.at)[k] =
          make_float4(in[4 * k], in[4 * k + 1], in[4 * k + 2], in[4 * k + 3]);
  }
}
template <typename T, typename Element>
SINTER_DEVICE void store_chunk(SharedRows<T> p, const Packed<Element>& in) {
  float wide[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) wide[k] = in[k];
  store_chunk(p, wide);
}

// The row of a class of rows (kernels/common/colocation.h), and the other way round.
template <typename Config>
SINTER_DEVICE int gemv_row(int row_class, int unit) {
  return row_class / Config::kStride * Config::kStride * Config::kUnits + unit * Config::kStride +
         row_class % Config::kStride;
}
template <typename Config>
SINTER_DEVICE int gemv_class(int row) {
  return row / (Config::kStride * Config::kUnits) * Config::kStride + row % Config::kStride;
}
template <typename Config>
SINTER_DEVICE int gemv_unit(int row) {
  return row / Config::kStride % Config::kUnits;
}

// A block's sums, addressed like the whole result [tokens, kRows] in memory.
template <typename Config>
struct GemvSums {
  const float* sums;  // [token][unit][class of the block][part]
  int first, count;   // classes of the block
  int parts;
  long long at;
  SINTER_DEVICE GemvSums operator+(long long n) const {
    return {sums, first, count, parts, at + n};
  }
  SINTER_DEVICE GemvSums operator-(long long n) const { return *this + -n; }
};
template <typename Config>
SINTER_DEVICE float load(GemvSums<Config> p) {
  const int at = static_cast<int>(p.at);
  const int token = at / Config::kRows, row = at % Config::kRows;
  const int unit = gemv_unit<Config>(row), own = gemv_class<Config>(row) - p.first;
  const float* parts = p.sums + ((token * Config::kUnits + unit) * p.count + own) * p.parts;
  float sum = parts[0];
  for (int s = 1; s < p.parts; ++s) sum = math::add(sum, parts[s]);
  return sum;
}

}  // namespace sinter
