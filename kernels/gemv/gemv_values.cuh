// The values that gemv.cuh computes with: chunks of matrix and operand, the operand while it is
// written and the sums while they are read.
#pragma once

#include "kernels/common/colocated_rows.cuh"
#include "kernels/gemv/layout.h"
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

// The operand in float32: of one token beside a packed matrix, whose every row would widen it
// again. In a run of kWideRun elements the first halves of all chunks stand before the second
// halves, so that the lanes of a warp, which read neighbouring chunks, use different banks.
SINTER_DEVICE constexpr int wide_place(int i) {
  return i / kWideRun * kWideRun + i % 8 / 4 * (kWideRun / 2) + i % kWideRun / 8 * 4 + i % 4;
}
template <typename T>
struct WideRow {
  float* first;
  int i;
  SINTER_DEVICE WideRow operator+(long long n) const { return {first, i + static_cast<int>(n)}; }
};
template <typename T>
SINTER_DEVICE void store_chunk(WideRow<T> p, const float (&in)[8]) {
  float rounded[8];
  widen(rounded, static_cast<const T*>(nullptr), narrow(static_cast<const T*>(nullptr), in));
#pragma unroll
  for (int k = 0; k < 2; ++k)
    reinterpret_cast<float4*>(p.first + wide_place(p.i))[k * (kWideRun / 8)] =
        make_float4(rounded[4 * k], rounded[4 * k + 1], rounded[4 * k + 2], rounded[4 * k + 3]);
}
template <template <typename> class Rows, typename T, typename Element>
SINTER_DEVICE void store_chunk(Rows<T> p, const Packed<Element>& in) {
  float wide[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) wide[k] = in[k];
  store_chunk(p, wide);
}
template <typename T>
SINTER_DEVICE void store(WideRow<T> p, float x) {
  p.first[wide_place(p.i)] = low_half(static_cast<const T*>(nullptr),
                                      pack(static_cast<const T*>(nullptr), x, 0.0f) & 0xffffu);
}

// A lane's chunks of the operand, from a multiple of kGemvStep elements on.
template <typename T>
struct NarrowChunks {
  const T* at;
  SINTER_DEVICE NarrowChunks(const T* first, int lane) : at(first + 8 * lane) {}
  SINTER_DEVICE void skip(int elements) { at += elements; }
  SINTER_DEVICE void read(float (&out)[8], int elements) const { read_chunk(out, at + elements); }
};
struct WideChunks {
  const float* at;
  SINTER_DEVICE WideChunks(const float* first, int lane) : at(first + 4 * lane) {}
  SINTER_DEVICE void skip(int elements) { at += elements; }
  SINTER_DEVICE void read(float (&out)[8], int elements) const {
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      const float4 words = *reinterpret_cast<const float4*>(at + elements + k * (kWideRun / 2));
      out[4 * k] = words.x;
      out[4 * k + 1] = words.y;
      out[4 * k + 2] = words.z;
      out[4 * k + 3] = words.w;
    }
  }
};

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
  const int unit = unit_of_row<Config>(row), own = class_of_row<Config>(row) - p.first;
  const float* parts = p.sums + ((token * Config::kUnits + unit) * p.count + own) * p.parts;
  float sum = parts[0];
  for (int s = 1; s < p.parts; ++s) sum = math::add(sum, parts[s]);
  return sum;
}

}  // namespace sinter
