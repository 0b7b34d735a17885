// Codes of packed matrices (ir/packed_codes.h) as pairs of 16-bit floats, the operands of tensor
// cores.
#pragma once

#include "ir/packed_codes.h"
#include "kernels/common/code_table.cuh"
#include "kernels/isa/bits.cuh"
#include "kernels/isa/pairs.cuh"

namespace sinter {

#if SINTER_HAS_FP8_CONVERSION
// A pair of f16 as a pair of T.
SINTER_DEVICE unsigned f16_pair(const f16*, unsigned pair) { return pair; }
SINTER_DEVICE unsigned f16_pair(const bf16* type, unsigned pair) {
  const f16* from = nullptr;
  return pack(type, low_half(from, pair & 0xffffu), low_half(from, pair >> 16));
}
#endif

// Codes `k` and k + 1 of a word, k even; exact. code_pair(Codes(), type, word, k).
template <typename Codes, typename T>
SINTER_DEVICE unsigned code_pair(Codes, const T* type, unsigned word, int k) {
  return pack(type, Codes::value(word, k), Codes::value(word, k + 1));
}

#if SINTER_HAS_MMA
// The 4 bits n of both codes as n - less: 1024 + n and 128 + n have n in their last bits.
SINTER_DEVICE unsigned nibble_base(const f16*) { return 0x64006400u; }
SINTER_DEVICE unsigned nibble_base(const bf16*) { return 0x43004300u; }
SINTER_DEVICE unsigned one_pair(const f16*) { return 0x3c003c00u; }
SINTER_DEVICE unsigned one_pair(const bf16*) { return 0x3f803f80u; }
// `upper`: the codes' upper bits, at bits 4 and 20.
template <unsigned less, typename T>
SINTER_DEVICE unsigned nibble_pair(const T* type, unsigned word, int k, unsigned upper = 0) {
  // Bytes 0 and 2 of `both` begin with the two codes.
  const unsigned byte = static_cast<unsigned>(k / 2);
  const unsigned both = prmt(word, word >> 4, 0x4400u + byte * 0x1111u);
  const unsigned base = nibble_base(type);
  return fma_rn(type, lop3_and_or(both, 0x000f000fu, base | upper), one_pair(type),
                (base | 0x80008000u) + less * 0x00010001u);
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::int4, const T* type, unsigned word, int k) {
  return nibble_pair<8>(type, word, k);
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::uint4, const T* type, unsigned word, int k) {
  return nibble_pair<0>(type, word, k);
}

// Codes of two planes: `upper` has the upper bits of the codes of a chunk.
template <int upper_bits, unsigned less, typename T>
SINTER_DEVICE unsigned plane_pair(const T* type, unsigned word, unsigned upper, int k) {
  constexpr unsigned mask = (1u << upper_bits) - 1;
  const unsigned own = upper >> upper_bits * k;
  return nibble_pair<less>(type, word, k,
                           lop3_and_or(own << (20 - upper_bits), mask << 20, (own & mask) << 4));
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::int5, const T* type, unsigned word, unsigned upper, int k) {
  return plane_pair<1, 16>(type, word, upper, k);
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::uint5, const T* type, unsigned word, unsigned upper,
                                 int k) {
  return plane_pair<1, 0>(type, word, upper, k);
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::int6, const T* type, unsigned word, unsigned upper, int k) {
  return plane_pair<2, 32>(type, word, upper, k);
}

// Bytes k and k + 1 at bytes 0 and 2.
SINTER_DEVICE unsigned spread_bytes(unsigned word, int k) {
  return prmt(word, 0, 0x4140u + static_cast<unsigned>(k) * 0x0101u);
}
// Two's complement: the byte with its sign bit flipped is the code + 128.
SINTER_DEVICE unsigned byte_pair(const f16* type, unsigned spread) {
  return fma_rn(type, (spread ^ 0x00800080u) | 0x64006400u, one_pair(type), 0xe480e480u);
}
// 128 + n of the lower 7 bits; the sign bit makes -256 of -128.
SINTER_DEVICE unsigned byte_pair(const bf16* type, unsigned spread) {
  return fma_rn(type, lop3_and_or(spread, 0x007f007fu, 0x43004300u), one_pair(type),
                lop3_and_or(spread, 0x00800080u, 0xc300c300u));
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::int8, const T* type, unsigned word, int k) {
  return byte_pair(type, spread_bytes(word, k));
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::uint8, const T* type, unsigned word, int k) {
  return fma_rn(type, byte_pair(type, spread_bytes(word, k) ^ 0x00800080u), one_pair(type),
                pack(type, 128.0f, 128.0f));
}
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::iq4nl, const T* type, unsigned word, int k) {
  return code_pair(codes::int8(), type, iq4nl_entries(word >> 4 * k), 0);
}
#endif
#if SINTER_HAS_FP8_CONVERSION
template <typename T>
SINTER_DEVICE unsigned code_pair(codes::e4m3, const T* type, unsigned word, int k) {
  return f16_pair(type, cvt_rn_f16x2_e4m3x2(word >> 8 * k));
}
#endif

}  // namespace sinter
