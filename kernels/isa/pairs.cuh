// Arithmetic on pairs of 16-bit floats, the first in the low half of a word, and conversions to
// them: fma.rn of f16x2 and bf16x2, cvt.rn.f16x2.e4m3x2.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

/// a * b + c, each half rounded once. The pointer, which may be null, tells the type.
SINTER_DEVICE unsigned fma_rn(const f16*, unsigned a, unsigned b, unsigned c) {
  unsigned word;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "r"(c));
  return word;
}
#if SINTER_HAS_BF16_ARITHMETIC
SINTER_DEVICE unsigned fma_rn(const bf16*, unsigned a, unsigned b, unsigned c) {
  unsigned word;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(word) : "r"(a), "r"(b), "r"(c));
  return word;
}
#endif

#if SINTER_HAS_FP8_CONVERSION
/// The two codes of the low half as f16; exact.
SINTER_DEVICE unsigned cvt_rn_f16x2_e4m3x2(unsigned codes) {
  unsigned word;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(word) : "h"(static_cast<unsigned short>(codes)));
  return word;
}
#endif

}  // namespace sinter
