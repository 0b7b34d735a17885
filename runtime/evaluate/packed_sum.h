// The sum of a packed row's products, in the order of kernels/gemv/order.h.
#pragma once

#include "ir/reduction_order.h"
#include "runtime/evaluate/packed_row.h"

namespace sinter {

inline float accumulate(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double accumulate(double a, double b, double c) { return a * b + c; }

/// Lanes combine by a butterfly.
template <typename T>
T lane_sum(T (&lane)[kCodeLanes]) {
  for (int stride = 1; stride < kCodeLanes; stride *= 2)
    for (int l = 0; l < kCodeLanes; l += 2 * stride) lane[l] = lane[l] + lane[l + stride];
  return lane[0];
}

/// The sum of one group: of its codes times x, and of x itself.
template <typename T>
struct GroupSum {
  T codes = 0, operand = 0;
  void add_chunk(const T* row, const T* x, bool minima) {
    for (int64_t e = 0; e < kChunk; ++e) codes = accumulate(row[e], x[e], codes);
    if (minima)
      for (int64_t e = 0; e < kChunk; ++e) operand += x[e];
  }
  T scaled(const UnpackedRow<T>& row, size_t group, T sum) const {
    sum = accumulate(row.scales[group], codes, sum);
    return row.minima.empty() ? sum : accumulate(-row.minima[group], operand, sum);
  }
};

/// The sum of the chunks `begin` .. `end` of a packed row times x.
template <typename T>
T packed_split_sum(const UnpackedRow<T>& row, int64_t group, const T* x, int64_t begin,
                   int64_t end) {
  const bool minima = !row.minima.empty();
  T lane[kCodeLanes] = {};
  for (int64_t l = 0; l < kCodeLanes; ++l) {
    GroupSum<T> of_row;
    for (int64_t c = begin + l; c < end; c += kCodeLanes) {
      const int64_t k = c * kChunk;
      if (group == 0) {
        of_row.add_chunk(&row.codes[static_cast<size_t>(k)], x + k, minima);
        continue;
      }
      GroupSum<T> own;
      own.add_chunk(&row.codes[static_cast<size_t>(k)], x + k, minima);
      lane[l] = own.scaled(row, static_cast<size_t>(k / group), lane[l]);
    }
    if (group == 0) lane[l] = of_row.scaled(row, 0, lane[l]);
  }
  return lane_sum(lane);
}

}  // namespace sinter
