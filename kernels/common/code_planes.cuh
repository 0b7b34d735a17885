// Codes of 5 and 6 bits, which stand in two planes (ir/packed_codes.h).
#pragma once

#include "ir/packed_codes.h"
#include "kernels/isa/bits.cuh"

namespace sinter {

// The codes of a chunk as bytes: those of even and of odd places.
struct CodeBytes {
  unsigned even, odd;
};
// Bytes whose lowest bits are the upper bits of codes 2j and 2j + 1.
template <int upper_bits>
SINTER_DEVICE unsigned upper_pairs(unsigned upper) {
  if constexpr (upper_bits == 2)
    return prmt(upper, upper >> 4, 0x5140u);
  else
    return upper | upper << 6 | upper << 12 | upper << 18;
}
// `low`: four bits of each code; `upper`: their upper bits.
template <int upper_bits>
SINTER_DEVICE CodeBytes code_bytes(unsigned low, unsigned upper) {
  constexpr unsigned mask = ((1u << upper_bits) - 1) * 0x10101010u;
  const unsigned pairs = upper_pairs<upper_bits>(upper);
  return {lop3_and_or(pairs << 4, mask, low & 0x0f0f0f0fu),
          lop3_and_or(pairs << (4 - upper_bits), mask, low >> 4 & 0x0f0f0f0fu)};
}

}  // namespace sinter
