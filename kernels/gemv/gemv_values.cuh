// The values that gemv.cuh computes with: chunks of matrix and operand, the operand while it is
// written and the sums while they are read.
#pragma once

#include "kernels/isa/mma.cuh"

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

// The row of a class of rows (ir/colocation.h), and the other way round.
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
