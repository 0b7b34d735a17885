// Sums over some lanes of a warp.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// Sums over the lanes whose numbers differ in the bits stride .. end / 2, by a butterfly with those
// strides. While there are several values, a lane keeps half of them at a step and gives the others
// away; its sums are values[0 .. max(1, count * stride / end) - 1], the sums of the values from
// kept_value on.
template <int stride, int end, int count, int size>
SINTER_DEVICE void sum_lanes(float (&values)[size], int lane) {
  constexpr unsigned all = 0xffffffffu;
  if constexpr (stride < end) {
    constexpr int half = count / 2;
    if constexpr (half > 0) {
      const bool upper = (lane & stride) != 0;
#pragma unroll
      for (int i = 0; i < half; ++i) {
        const float kept = upper ? values[i + half] : values[i];
        const float given = upper ? values[i] : values[i + half];
        values[i] = math::add(kept, __shfl_xor_sync(all, given, stride));
      }
    } else {
      values[0] = math::add(values[0], __shfl_xor_sync(all, values[0], stride));
    }
    sum_lanes<2 * stride, end, half == 0 ? 1 : half>(values, lane);
  }
}
template <int stride, int end, int count>
SINTER_DEVICE constexpr int kept_value(int lane) {
  int first = 0;
  for (int s = stride, half = count / 2; s < end && half > 0; s *= 2, half /= 2)
    if ((lane & s) != 0) first += half;
  return first;
}
// The first lane that keeps a value.
template <int stride, int end, int count>
SINTER_DEVICE constexpr int keeping_lane(int value) {
  int lane = 0;
  for (int s = stride, half = count / 2; s < end && half > 0; s *= 2, half /= 2)
    if ((value & half) != 0) lane += s;
  return lane;
}
template <int stride, int end, int count>
SINTER_DEVICE constexpr int kept_values() {
  return count * stride > end ? count * stride / end : 1;
}

}  // namespace sinter
