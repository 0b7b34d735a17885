// Reading packed matrices (ir/packed_codes.h) on the device.
#pragma once

#include "ir/packed_codes.h"
#include "kernels/common/vector.cuh"

namespace sinter {

// The numbers of one group.
template <bool minima>
struct GroupScale {
  float scale, zero, minimum;
  // The element of a code that is less its zero.
  SINTER_DEVICE float apply(float code) const {
    return minima ? math::fma(scale, code, -minimum) : math::mul(scale, code);
  }
};

//   Codes     one of codes:: (ir/packed_codes.h), of `bits` bits
//   Scale     the type of scales and minima in memory
//   group     codes of a scale; 0: all of a row
//   length    codes of a row
template <typename Codes, int bits, int group, typename Scale, bool zeros, bool minima, int length>
struct PackedMatrix {
  using Element = int;  // of the kernel's pointer
  static constexpr bool kPacked = true, kMinima = minima, kRowScale = group == 0;
  static constexpr int kLength = length;
  static SINTER_DEVICE constexpr CodeLayout layout() {
    return {bits, group, static_cast<int>(sizeof(Scale)), zeros, minima};
  }
  static constexpr int kStepLength = 16 / bits * kCodeRound;
  static constexpr int kStepBytes =
      CodeLayout{bits, group, sizeof(Scale), zeros, minima}.step_bytes();
  static constexpr long long kRowBytes =
      CodeLayout{bits, group, sizeof(Scale), zeros, minima}.row_bytes(length);

  // The address of the step that begins with code `k` of a row; of the tail where k >= length.
  static SINTER_DEVICE const unsigned char* at(const int* matrix, long long row, int k) {
    return reinterpret_cast<const unsigned char*>(matrix) + row * kRowBytes +
           layout().step_offset(k, length);
  }
  // Bytes from the step that begins with code `begin` to that with code `begin + count`.
  static SINTER_DEVICE int bytes(int begin, int count) {
    return static_cast<int>(layout().step_offset(begin + count, length) -
                            layout().step_offset(begin, length));
  }

  using Group = GroupScale<minima>;
  static SINTER_DEVICE Group group_at(const unsigned char* scale, const unsigned char* zero,
                                      const unsigned char* minimum) {
    return {load(reinterpret_cast<const Scale*>(scale)),
            zeros ? static_cast<float>(*reinterpret_cast<const short*>(zero)) : 0.0f,
            minima ? load(reinterpret_cast<const Scale*>(minimum)) : 0.0f};
  }
  // The scale of a row that has one.
  static SINTER_DEVICE Group scale_of_row(const int* matrix, long long row) {
    const unsigned char* tail = at(matrix, row, length);
    return group_at(tail, tail + 4, tail + 8);
  }
  // The scale of a lane's chunk in round `round` of a step with `rounds` of them.
  static SINTER_DEVICE Group scale_of_chunk(const unsigned char* step, int lane, int round,
                                            int rounds) {
    const int entry = layout().entry(lane, round, rounds);
    return group_at(step + layout().scales(rounds) + entry * layout().scale_bytes,
                    step + layout().zeros_at(rounds) + entry * 2,
                    step + layout().minima_at(rounds) + entry * layout().scale_bytes);
  }
  static SINTER_DEVICE Group scale_of(const int* matrix, long long row, const unsigned char* step,
                                      int lane, int round, int rounds) {
    if constexpr (kRowScale)
      return scale_of_row(matrix, row);
    else
      return scale_of_chunk(step, lane, round, rounds);
  }

  // Words of a lane in a round.
  static constexpr int kWords = bits / 4;
  // The codes of a chunk less their zero.
  static SINTER_DEVICE void widen(float (&out)[kCodeChunk], const unsigned (&word)[kWords],
                                  float zero) {
#pragma unroll
    for (int k = 0; k < kCodeChunk; ++k) {
      out[k] = Codes::value(word[k * bits / 32], k % (32 / bits));
      if constexpr (zeros) out[k] = math::sub(out[k], zero);
    }
  }
  static SINTER_DEVICE void read(float (&out)[kCodeChunk], const unsigned char* step, int lane,
                                 int round, int rounds, float zero) {
    unsigned word[kWords];
    const auto* from =
        reinterpret_cast<const unsigned*>(step + (lane * rounds + round) * layout().lane_bytes());
#pragma unroll
    for (int w = 0; w < kWords; ++w) word[w] = from[w];
    widen(out, word, zero);
  }
};

}  // namespace sinter
