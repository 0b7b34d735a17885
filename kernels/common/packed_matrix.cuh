// Reading packed matrices (ir/packed_codes.h) on the device.
#pragma once

#include "ir/packed_codes.h"
#include "kernels/common/code_planes.cuh"
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
// Codes of two planes.
template <int upper_bits>
SINTER_DEVICE void widen_planes(float (&out)[kCodeChunk], const unsigned (&word)[2], float less) {
  constexpr unsigned base = 0x4b000000u;
  const CodeBytes bytes = code_bytes<upper_bits>(word[0], word[1]);
#pragma unroll
  for (int k = 0; k < kCodeChunk; ++k)
    out[k] = math::sub(
        math::bits_float(prmt(k % 2 == 0 ? bytes.even : bytes.odd, base, 0x7650u + k / 2)),
        math::add(math::bits_float(base), less));
}
SINTER_DEVICE void widen_codes(codes::int5, float (&out)[kCodeChunk], const unsigned (&word)[2],
                               float less) {
  widen_planes<1>(out, word, math::add(less, 16.0f));
}
SINTER_DEVICE void widen_codes(codes::uint5, float (&out)[kCodeChunk], const unsigned (&word)[2],
                               float less) {
  widen_planes<1>(out, word, less);
}
SINTER_DEVICE void widen_codes(codes::int6, float (&out)[kCodeChunk], const unsigned (&word)[2],
                               float less) {
  widen_planes<2>(out, word, math::add(less, 32.0f));
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
SINTER_DEVICE constexpr int middle_code(codes::uint5) { return 16; }
SINTER_DEVICE constexpr int middle_code(codes::uint8) { return 128; }

// `bits` of them at `bit` of `p`, in one byte.
template <int bits>
SINTER_DEVICE unsigned load_bits(const unsigned char* p, int bit) {
  return static_cast<unsigned>(p[bit / 8]) >> bit % 8 & ((1u << bits) - 1);
}
// 1, 2 or 4 bytes.
template <int bytes>
SINTER_DEVICE unsigned load_bytes(const unsigned char* p) {
  if constexpr (bytes == 1)
    return *p;
  else if constexpr (bytes == 2)
    return *reinterpret_cast<const unsigned short*>(p);
  else
    return *reinterpret_cast<const unsigned*>(p);
}

template <bool first, typename A, typename B>
struct Either {
  using Type = A;
};
template <typename A, typename B>
struct Either<false, A, B> {
  using Type = B;
};

//   Codes     one of codes:: (ir/packed_codes.h), of `bits` bits
//   Scale     the type of scales and minima in memory
//   group     codes of a scale; 0: all of a row
//   length    codes of a row
//   parts     bits of the parts of scales, or 0
template <typename Codes, int bits, int group, typename Scale, bool zeros, bool minima, int length,
          int parts = 0>
struct PackedMatrix {
  using Element = int;  // of the kernel's pointer
  using CodesType = Codes;
  static constexpr bool kPacked = true, kZeros = zeros, kMinima = minima, kRowScale = group == 0;
  // Subtracted from codes and zeros where zeros are applied to a sum, so that both are small.
  static constexpr int kBias = zeros ? middle_code(Codes()) : 0;
  static constexpr int kLength = length;
  static SINTER_DEVICE constexpr CodeLayout layout() {
    return {bits, group, static_cast<int>(sizeof(Scale)), zeros, minima, parts};
  }
  static constexpr CodeLayout kLayout = {bits, group, sizeof(Scale), zeros, minima, parts};
  static constexpr int kRounds = kLayout.step_rounds();
  static constexpr int kStepLength = kLayout.step_length();
  static constexpr int kStepBytes = kLayout.step_bytes();
  static constexpr long long kRowBytes = kLayout.row_bytes(length);
  static constexpr int kPartLow = kLayout.part_low(), kPartUpper = kLayout.part_upper();

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
  // By the bits of a group's entry in the planes of parts, and its factors.
  static SINTER_DEVICE Group group_of_parts(unsigned low, unsigned upper, float factor,
                                            float of_minimum) {
    const CodeParts own = code_parts(layout(), low, upper);
    return {math::mul(factor, static_cast<float>(own.scale)), 0.0f,
            minima ? math::mul(of_minimum, static_cast<float>(own.minimum)) : 0.0f};
  }
  // The scale of a lane's chunk in round `round` of a step with `rounds` of them. `scales`: where
  // the scales of the step begin.
  static SINTER_DEVICE Group scale_at(const unsigned char* scales, int lane, int round,
                                      int rounds) {
    const int entry = layout().entry(lane, round, rounds), begin = layout().scales(rounds);
    if constexpr (parts > 0) {
      const auto* factor = reinterpret_cast<const Scale*>(scales + layout().factors_at(rounds) -
                                                          begin + round * layout().factor_bytes());
      return group_of_parts(part_at(scales, entry),
                            upper_part_at(scales + layout().upper_parts_at(rounds) - begin, entry),
                            load(factor), minima ? load(factor + 1) : 0.0f);
    } else {
      return group_at(scales + entry * layout().scale_bytes,
                      scales + layout().zeros_at(rounds) - begin + entry * 2,
                      scales + layout().minima_at(rounds) - begin + entry * layout().scale_bytes);
    }
  }
  static SINTER_DEVICE unsigned part_at(const unsigned char* plane, int entry) {
    return load_bits<kPartLow>(plane, entry * kPartLow);
  }
  static SINTER_DEVICE unsigned upper_part_at(const unsigned char* plane, int entry) {
    if constexpr (kPartUpper == 0)
      return 0;
    else
      return load_bits<kPartUpper>(plane, entry * kPartUpper);
  }
  static SINTER_DEVICE Group scale_of_chunk(const unsigned char* step, int lane, int round,
                                            int rounds) {
    return scale_at(step + layout().scales(rounds), lane, round, rounds);
  }
  // The scales of a lane's chunks in a whole step.
  struct StepScales {
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
  // The same of parts.
  struct StepParts {
    static constexpr int kFactorBytes = kLayout.factor_bytes();
    unsigned low, upper, factor[kRounds * kFactorBytes / 4];

    SINTER_DEVICE void load(const unsigned char* step, int lane) {
      const int entry = layout().entry(lane, 0, kRounds);
      low = load_bytes<kRounds * kPartLow / 8>(step + layout().scales(kRounds) +
                                               entry * kPartLow / 8);
      if constexpr (kPartUpper > 0)
        upper = load_bytes<kRounds * kPartUpper / 8>(step + layout().upper_parts_at(kRounds) +
                                                     entry * kPartUpper / 8);
      load_words<kRounds * kFactorBytes>(factor, step + layout().factors_at(kRounds));
    }
    SINTER_DEVICE void load(const unsigned char* step, int lane, int rounds) {
      low = upper = 0;
#pragma unroll
      for (int k = 0; k < kRounds * kFactorBytes / 4; ++k) factor[k] = 0;
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        if (round >= rounds) break;
        const int entry = layout().entry(lane, round, rounds);
        low |= part_at(step + layout().scales(rounds), entry) << kPartLow * round;
        upper |= upper_part_at(step + layout().upper_parts_at(rounds), entry) << kPartUpper * round;
        const unsigned char* from = step + layout().factors_at(rounds) + round * kFactorBytes;
        const int bit = 8 * kFactorBytes * round;
        factor[bit / 32] |= load_bytes<kFactorBytes>(from) << bit % 32;
      }
    }
    SINTER_DEVICE Group of_round(int round) const {
      const Scale* type = nullptr;
      const int bit = 8 * kFactorBytes * round;
      const unsigned factors = factor[bit / 32] >> bit % 32;
      return group_of_parts(low >> kPartLow * round & ((1u << kPartLow) - 1),
                            kPartUpper > 0 ? upper >> kPartUpper * round : 0,
                            low_half(type, factors & 0xffffu),
                            minima ? low_half(type, factors >> 16) : 0.0f);
    }
  };
  using StepGroups = typename Either<(parts > 0), StepParts, StepScales>::Type;
  static SINTER_DEVICE Group scale_of(const int* matrix, long long row, const unsigned char* step,
                                      int lane, int round, int rounds) {
    if constexpr (kRowScale)
      return scale_of_row(matrix, row);
    else
      return scale_of_chunk(step, lane, round, rounds);
  }

  // Words of a lane in a round: of the first plane, and one of upper bits.
  static constexpr int kLowWords = kLayout.low_bits() / 4, kUpper = kLayout.upper_bits();
  static constexpr int kWords = kLowWords + (kUpper > 0 ? 1 : 0);
  // A lane's codes of a step.
  struct StepCodes {
    unsigned low[4], upper[kUpper > 0 ? kUpper : 1];

    SINTER_DEVICE void load(const unsigned char* step, int lane) {
      load_words<16>(low, step + 16 * lane);
      if constexpr (kUpper > 0)
        load_words<4 * kUpper>(upper, step + layout().upper(kRounds) + 4 * kUpper * lane);
    }
    // A step with fewer rounds; the codes of the others are 0.
    SINTER_DEVICE void load(const unsigned char* step, int lane, int rounds) {
      const auto* from = reinterpret_cast<const unsigned*>(step) + lane * rounds * kLowWords;
#pragma unroll
      for (int w = 0; w < 4; ++w) low[w] = w < rounds * kLowWords ? from[w] : 0;
      if constexpr (kUpper > 0) {
        upper[0] = upper[kUpper - 1] = 0;
#pragma unroll
        for (int round = 0; round < kRounds; ++round)
          if (round < rounds)
            upper[round * kUpper / 4] |= upper_of_chunk(step, lane, round, rounds)
                                         << round * kUpper % 4 * 8;
      }
    }
    SINTER_DEVICE void of_round(unsigned (&word)[kWords], int round) const {
#pragma unroll
      for (int w = 0; w < kLowWords; ++w) word[w] = low[round * kLowWords + w];
      if constexpr (kUpper > 0)
        word[kLowWords] =
            upper[round * kUpper / 4] >> round * kUpper % 4 * 8 & ((1u << 8 * kUpper) - 1);
    }
  };
  // The codes of a chunk, of a step with `rounds` rounds.
  static SINTER_DEVICE void load_chunk(unsigned (&word)[kWords], const unsigned char* step,
                                       int lane, int round, int rounds) {
    unsigned low[kLowWords];
    load_words<4 * kLowWords>(low, step + (lane * rounds + round) * layout().lane_bytes());
#pragma unroll
    for (int w = 0; w < kLowWords; ++w) word[w] = low[w];
    if constexpr (kUpper > 0) word[kLowWords] = upper_of_chunk(step, lane, round, rounds);
  }
  static SINTER_DEVICE unsigned upper_of_chunk(const unsigned char* step, int lane, int round,
                                               int rounds) {
    return load_bytes<kUpper>(step + layout().upper(rounds) + (lane * rounds + round) * kUpper);
  }
  // The codes of a chunk less their zero.
  static SINTER_DEVICE void widen(float (&out)[kCodeChunk], const unsigned (&word)[kWords],
                                  float zero) {
    widen_codes(Codes(), out, word, zeros ? zero : 0.0f);
  }
  static SINTER_DEVICE void read(float (&out)[kCodeChunk], const unsigned char* step, int lane,
                                 int round, int rounds, float zero) {
    unsigned word[kWords];
    load_chunk(word, step, lane, round, rounds);
    widen(out, word, zero);
  }
};

}  // namespace sinter
