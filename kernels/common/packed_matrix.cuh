// Reading packed matrices (ir/packed_codes.h) on the device.
#pragma once

#include "ir/packed_codes.h"
#include "kernels/common/code_table.cuh"
#include "kernels/isa/bits.cuh"
#include "kernels/isa/pairs.cuh"

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

// `bytes` of them, 4, 8 or 16 at a multiple of that.
template <int bytes>
SINTER_DEVICE void load_words(unsigned (&out)[bytes / 4], const unsigned char* p) {
  if constexpr (bytes == 4) {
    out[0] = *reinterpret_cast<const unsigned*>(p);
  } else if constexpr (bytes == 8) {
    const uint2 all = *reinterpret_cast<const uint2*>(p);
    out[0] = all.x, out[1] = all.y;
  } else {
    const uint4 all = *reinterpret_cast<const uint4*>(p);
    out[0] = all.x, out[1] = all.y, out[2] = all.z, out[3] = all.w;
  }
}

// The 8 codes of a chunk less `less`, an integer: codes::NAME::value() of each, in fewer
// instructions.
template <typename Codes, int words>
SINTER_DEVICE void widen_codes(Codes, float (&out)[kCodeChunk], const unsigned (&word)[words],
                               float less) {
#pragma unroll
  for (int k = 0; k < kCodeChunk; ++k)
    out[k] = math::sub(Codes::value(word[k * words / kCodeChunk], k % (kCodeChunk / words)), less);
}
// n is in the mantissa of 2^(23 - p) + n, p the bit at which it stands. All differences are exact.
SINTER_DEVICE void widen_nibbles(float (&out)[kCodeChunk], unsigned word, float less) {
  const unsigned upper = word >> 12;
#pragma unroll
  for (int k = 0; k < kCodeChunk; ++k) {
    const int p = k < 5 ? 4 * k : 4 * k - 12;
    const unsigned exponent = static_cast<unsigned>(127 + 23 - p) << 23;
    const float with_base =
        math::bits_float(lop3_and_or(k < 5 ? word : upper, 0xfu << p, exponent));
    out[k] = math::sub(with_base, math::add(math::bits_float(exponent), less));
  }
}
SINTER_DEVICE void widen_codes(codes::int4, float (&out)[kCodeChunk], const unsigned (&word)[1],
                               float less) {
  widen_nibbles(out, word[0], math::add(less, 8.0f));
}
SINTER_DEVICE void widen_codes(codes::uint4, float (&out)[kCodeChunk], const unsigned (&word)[1],
                               float less) {
  widen_nibbles(out, word[0], less);
}
// A byte is the lowest of the mantissa of 2^23 + n.
SINTER_DEVICE void widen_bytes(float (&out)[kCodeChunk], const unsigned (&word)[2], unsigned flip,
                               float less) {
  constexpr unsigned base = 0x4b000000u;
#pragma unroll
  for (int k = 0; k < kCodeChunk; ++k)
    out[k] = math::sub(math::bits_float(prmt(word[k / 4] ^ flip, base, 0x7650u + k % 4)),
                       math::add(math::bits_float(base), less));
}
SINTER_DEVICE void widen_codes(codes::int8, float (&out)[kCodeChunk], const unsigned (&word)[2],
                               float less) {
  widen_bytes(out, word, 0x80808080u, math::add(less, 128.0f));
}
SINTER_DEVICE void widen_codes(codes::uint8, float (&out)[kCodeChunk], const unsigned (&word)[2],
                               float less) {
  widen_bytes(out, word, 0, less);
}
SINTER_DEVICE void widen_codes(codes::iq4nl, float (&out)[kCodeChunk], const unsigned (&word)[1],
                               float less) {
  const unsigned entries[2] = {iq4nl_entries(word[0]), iq4nl_entries(word[0] >> 16)};
  widen_codes(codes::int8(), out, entries, less);
}
#if SINTER_HAS_FP8_CONVERSION
SINTER_DEVICE void widen_codes(codes::e4m3, float (&out)[kCodeChunk], const unsigned (&word)[2],
                               float) {
  const f16* type = nullptr;
#pragma unroll
  for (int k = 0; k < kCodeChunk; k += 2) {
    const unsigned pair = cvt_rn_f16x2_e4m3x2(word[k / 4] >> 8 * (k % 4));
    out[k] = low_half(type, pair & 0xffffu);
    out[k + 1] = low_half(type, pair >> 16);
  }
}
#endif

// The middle of the codes' values, as an integer.
template <typename Codes>
SINTER_DEVICE constexpr int middle_code(Codes) {
  return 0;
}
SINTER_DEVICE constexpr int middle_code(codes::uint4) { return 8; }
SINTER_DEVICE constexpr int middle_code(codes::uint8) { return 128; }

//   Codes     one of codes:: (ir/packed_codes.h), of `bits` bits
//   Scale     the type of scales and minima in memory
//   group     codes of a scale; 0: all of a row
//   length    codes of a row
template <typename Codes, int bits, int group, typename Scale, bool zeros, bool minima, int length>
struct PackedMatrix {
  using Element = int;  // of the kernel's pointer
  using CodesType = Codes;
  static constexpr bool kPacked = true, kZeros = zeros, kMinima = minima, kRowScale = group == 0;
  // Subtracted from codes and zeros where zeros are applied to a sum, so that both are small.
  static constexpr int kBias = zeros ? middle_code(Codes()) : 0;
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
  // The scales of a lane's chunks in a whole step.
  struct StepGroups {
    static constexpr int kRounds = 16 / bits;
    static constexpr int kScaleBytes = kRounds * static_cast<int>(sizeof(Scale));
    unsigned scale[kScaleBytes / 4], zero[zeros ? kRounds / 2 : 1],
        minimum[minima ? kScaleBytes / 4 : 1];

    SINTER_DEVICE void load(const unsigned char* step, int lane) {
      const int entry = layout().entry(lane, 0, kRounds);
      load_words<kScaleBytes>(scale, step + layout().scales(kRounds) + entry * sizeof(Scale));
      if constexpr (zeros)
        load_words<2 * kRounds>(zero, step + layout().zeros_at(kRounds) + entry * 2);
      if constexpr (minima)
        load_words<kScaleBytes>(minimum,
                                step + layout().minima_at(kRounds) + entry * sizeof(Scale));
    }
    // A step with fewer rounds; the scales of the others are 0.
    SINTER_DEVICE void load(const unsigned char* step, int lane, int rounds) {
#pragma unroll
      for (int k = 0; k < kScaleBytes / 4; ++k) scale[k] = 0;
      if constexpr (zeros) zero[0] = zero[kRounds / 2 - 1] = 0;
      if constexpr (minima)
#pragma unroll
        for (int k = 0; k < kScaleBytes / 4; ++k) minimum[k] = 0;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        if (round >= rounds) break;
        const int entry = layout().entry(lane, round, rounds);
        insert<sizeof(Scale)>(scale, round, step + layout().scales(rounds), entry);
        if constexpr (zeros) insert<2>(zero, round, step + layout().zeros_at(rounds), entry);
        if constexpr (minima)
          insert<sizeof(Scale)>(minimum, round, step + layout().minima_at(rounds), entry);
      }
    }
    SINTER_DEVICE Group of_round(int round) const {
      return {value(scale, round),
              zeros ? static_cast<float>(static_cast<short>(half(zero, round))) : 0.0f,
              minima ? value(minimum, round) : 0.0f};
    }

   private:
    template <int bytes, int words>
    static SINTER_DEVICE void insert(unsigned (&word)[words], int round, const unsigned char* from,
                                     int entry) {
      if constexpr (bytes == 4)
        word[round] = reinterpret_cast<const unsigned*>(from)[entry];
      else
        word[round / 2] |=
            static_cast<unsigned>(reinterpret_cast<const unsigned short*>(from)[entry])
            << 16 * (round % 2);
    }
    template <int words>
    static SINTER_DEVICE unsigned half(const unsigned (&word)[words], int round) {
      return word[round / 2 % words] >> 16 * (round % 2) & 0xffffu;
    }
    template <int words>
    static SINTER_DEVICE float value(const unsigned (&word)[words], int round) {
      if constexpr (sizeof(Scale) == 4)
        return math::bits_float(word[round % words]);
      else
        return low_half(static_cast<const Scale*>(nullptr), half(word, round));
    }
  };
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
    widen_codes(Codes(), out, word, zeros ? zero : 0.0f);
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
