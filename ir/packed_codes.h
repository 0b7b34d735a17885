// The values of codes, and the layout of a packed row: one text for host and device.
//
// A chunk is 8 neighbouring codes of a row, a round 32 chunks, one for each lane of a warp, and a
// step the rounds of which a lane has 16 bytes of codes: 4 rounds of 4 bits, 2 of 8 bits. The last
// step of a row has as many rounds as are left; codes behind the row's end are 0. Codes of 5 and 6
// bits stand in two planes: four bits of each as codes of 4 bits do, then their upper bits, of
// which a chunk has 1 or 2 bytes.
//
//   row:   | step | step | ... | tail: one scale a row |
//   step:  | codes of lane 0: round 0, 1, .. | of lane 1 | ... | upper bits likewise |
//          | scales | zeros | minima | padding |
//
// Scales of a step are sorted by place of the group in a round, then by round: a lane reads the
// scales of its rounds at once. Zeros (16-bit integers) and minima (of the scale's type) are sorted
// likewise. A step, a tail and so a row have a multiple of 16 bytes.
//
// Scales of parts: a group's scale is an integer, its part, times the factor of a round; its
// minimum likewise. A step has in the place of scales
//
//   | lower bits of parts | upper bits of parts | of each round the factor, with minima a second |
//
// A part of 8 bits has lower bits alone. A part of 6 bits is 0 .. 63 beside a minimum, whose part
// is the same; else it stands plus 32. Lower bits: four of the scale's part, then four of the
// minimum's; upper bits: two of each. Both are sorted as scales are.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kCodeChunk = 8, kCodeRound = 256;  // codes
constexpr int kCodeLanes = 32;
/// Lanes of a half of a packed step, and the columns that they have in a round.
constexpr int kCodesHalfLanes = kCodeLanes / 2, kCodesRun = kCodesHalfLanes * kCodeChunk;
constexpr int kCodeTail = 16;  // bytes: the scale at 0, the zero at 4, the minimum at 8

/// The layout of a packed matrix follows from these.
struct CodeLayout {
  int bits;         // of a code
  int group;        // codes of a scale; 0: all of a row
  int scale_bytes;  // of a scale and of a minimum; of a factor
  bool zeros, minima;
  int part_bits = 0;  // of a part; 0: scales have no parts

  /// Bits of a code in the first plane, and in the second.
  SINTER_DEVICE constexpr int low_bits() const { return bits < 8 ? 4 : 8; }
  SINTER_DEVICE constexpr int upper_bits() const { return bits - low_bits(); }
  SINTER_DEVICE constexpr int step_rounds() const { return 16 / low_bits(); }
  SINTER_DEVICE constexpr int step_length() const { return step_rounds() * kCodeRound; }
  /// Bytes of the codes of a step, and of a lane's codes in a round, in the first plane.
  SINTER_DEVICE constexpr int code_bytes(int rounds) const { return kCodeLanes * bits * rounds; }
  SINTER_DEVICE constexpr int lane_bytes() const { return low_bits(); }
  SINTER_DEVICE constexpr int round_groups() const { return group == 0 ? 0 : kCodeRound / group; }

  /// The index, among a step's scales, of the scale for a lane's round `round`.
  SINTER_DEVICE constexpr int entry(int lane, int round, int rounds) const {
    return lane * kCodeChunk / group * rounds + round;
  }
  /// Offsets in a step, in bytes.
  SINTER_DEVICE constexpr int upper(int rounds) const { return kCodeLanes * low_bits() * rounds; }
  SINTER_DEVICE constexpr int scales(int rounds) const { return code_bytes(rounds); }
  SINTER_DEVICE constexpr int zeros_at(int rounds) const {
    return scales(rounds) + round_groups() * rounds * scale_bytes;
  }
  SINTER_DEVICE constexpr int minima_at(int rounds) const {
    return zeros_at(rounds) + (zeros ? round_groups() * rounds * 2 : 0);
  }
  /// Bits of a group's entry in the two planes of parts, where they begin, and the factors.
  SINTER_DEVICE constexpr int part_low() const { return minima || part_bits == 8 ? 8 : 4; }
  SINTER_DEVICE constexpr int part_upper() const { return part_bits == 8 ? 0 : minima ? 4 : 2; }
  SINTER_DEVICE constexpr int upper_parts_at(int rounds) const {
    return scales(rounds) + round_groups() * rounds * part_low() / 8;
  }
  SINTER_DEVICE constexpr int factors_at(int rounds) const {
    return upper_parts_at(rounds) + round_groups() * rounds * part_upper() / 8;
  }
  SINTER_DEVICE constexpr int factor_bytes() const {
    return minima ? 2 * scale_bytes : scale_bytes;
  }
  SINTER_DEVICE constexpr int step_bytes(int rounds) const {
    const int of_groups = minima_at(rounds) + (minima ? round_groups() * rounds * scale_bytes : 0);
    const int end = part_bits == 0 ? of_groups : factors_at(rounds) + rounds * factor_bytes();
    return (end + 15) / 16 * 16;
  }
  SINTER_DEVICE constexpr int step_bytes() const { return step_bytes(step_rounds()); }

  /// Offset in a row, in bytes, of the step that begins with code `k`, a multiple of step_length();
  /// where all codes are before it, of the tail.
  SINTER_DEVICE constexpr long long step_offset(long long k, long long length) const {
    if (k < length) return k / step_length() * step_bytes();
    const long long rounds = (length + kCodeRound - 1) / kCodeRound;
    const int left = static_cast<int>(rounds % step_rounds());
    return rounds / step_rounds() * step_bytes() + (left == 0 ? 0 : step_bytes(left));
  }
  SINTER_DEVICE constexpr long long row_bytes(long long length) const {
    return step_offset(length, length) + (group == 0 ? kCodeTail : 0);
  }
};

/// The parts of a group: what its scale and its minimum are multiplied by.
struct CodeParts {
  int scale, minimum;
};
/// By the bits of a group's entry in both planes.
SINTER_DEVICE constexpr CodeParts code_parts(const CodeLayout& layout, math::u32 low,
                                             math::u32 upper) {
  if (layout.part_bits == 8) return {static_cast<int>(low << 24) >> 24, 0};
  const int scale = static_cast<int>((low & 15u) | (upper & 3u) << 4);
  if (!layout.minima) return {scale - 32, 0};
  return {scale, static_cast<int>(low >> 4 & 15u) | static_cast<int>(upper >> 2 & 3u) << 4};
}

/// The float32 value of code `k` of a 32-bit word; exact.
namespace codes {

/// Code `k` of `bits` bits, which stands in the word.
template <int bits>
SINTER_DEVICE int number(math::u32 word, int k) {
  return static_cast<int>(word >> bits * k & ((1u << bits) - 1));
}

/// 0 .. 31; n - 16 and n - 32 for the bits n.
struct uint5 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    return static_cast<float>(number<5>(word, k));
  }
};
struct int5 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    return static_cast<float>(number<5>(word, k) - 16);
  }
};
struct int6 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    return static_cast<float>(number<6>(word, k) - 32);
  }
};

struct int8 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    return static_cast<float>(static_cast<int>(word << (24 - 8 * k)) >> 24);
  }
};

struct uint8 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    return static_cast<float>(static_cast<int>(word >> 8 * k & 0xffu));
  }
};

/// 2^(23 - p) + n for the 4 bits n at bit p, the bits of its exponent with n in its mantissa.
struct Nibble {
  float with_base, base;
};
SINTER_DEVICE Nibble nibble(math::u32 word, int k) {
  // The mantissa has the bits 0 .. 22: five nibbles, and five of the word's upper bits.
  const int p = k < 5 ? 4 * k : 4 * k - 12;
  const math::u32 exponent = static_cast<math::u32>(127 + 23 - p) << 23;
  return {math::bits_float(((k < 5 ? word : word >> 12) & 0xfu << p) | exponent),
          math::bits_float(exponent)};
}

struct int4 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    const Nibble n = nibble(word, k);
    return n.with_base - (n.base + 8.0f);
  }
};

struct uint4 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    const Nibble n = nibble(word, k);
    return n.with_base - n.base;
  }
};

struct e4m3 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    // The magnitude is read as the bits of a float, which is too small by 2^120, also where the
    // code is subnormal.
    const math::u32 top = word << (24 - 8 * k);
    const math::u32 bits = static_cast<math::u32>(static_cast<int>(top) >> 4) & 0x87f00000u;
    return (top & 0x7f000000u) == 0x7f000000u ? math::nan() : math::bits_float(bits) * 0x1p120f;
  }
};

struct e2m1 {
  static SINTER_DEVICE float value(math::u32 word, int k) {
    // The same with 2^126.
    const math::u32 top = word << (28 - 4 * k);
    const math::u32 bits = static_cast<math::u32>(static_cast<int>(top) >> 6) & 0x81c00000u;
    return math::bits_float(bits) * 0x1p126f;
  }
};

struct iq4nl {
  /// Entries first .. first + 3 of the table, two's complement, the first in the lowest byte.
  static SINTER_DEVICE constexpr math::u32 entries(int first) {
    constexpr int table[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                               1,    13,   25,  38,  53,  69,  89,  113};
    math::u32 word = 0;
    for (int i = 0; i < 4; ++i) word |= static_cast<math::u32>(table[first + i] & 0xff) << 8 * i;
    return word;
  }
  static SINTER_DEVICE float value(math::u32 word, int k) {
    constexpr math::u32 first = entries(0), second = entries(4), third = entries(8),
                        last = entries(12);
    const math::u32 n = word >> 4 * k & 0xfu;
    return int8::value(n < 8 ? (n < 4 ? first : second) : (n < 12 ? third : last),
                       static_cast<int>(n % 4));
  }
};

}  // namespace codes

}  // namespace sinter
