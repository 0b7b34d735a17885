// lop3 and prmt: any function of three words' bits, and a choice of four bytes out of eight.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// (a & b) | c
SINTER_DEVICE unsigned lop3_and_or(unsigned a, unsigned b, unsigned c) {
  unsigned word;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;" : "=r"(word) : "r"(a), "r"(b), "r"(c));
  return word;
}

/// Byte i of the result is the one of `a` (0 .. 3) and `b` (4 .. 7) that digit i of `digits` names.
SINTER_DEVICE unsigned prmt(unsigned a, unsigned b, unsigned digits) {
  unsigned word;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "r"(digits));
  return word;
}

}  // namespace sinter
