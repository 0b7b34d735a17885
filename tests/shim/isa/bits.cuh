// lop3 and prmt.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE unsigned lop3_and_or(unsigned a, unsigned b, unsigned c) { return (a & b) | c; }

SINTER_DEVICE unsigned prmt(unsigned a, unsigned b, unsigned digits) {
  const unsigned long long bytes = static_cast<unsigned long long>(b) << 32 | a;
  unsigned word = 0;
  for (int i = 0; i < 4; ++i)
    word |= static_cast<unsigned>(bytes >> 8 * (digits >> 4 * i & 7u) & 0xffu) << 8 * i;
  return word;
}

}  // namespace sinter
