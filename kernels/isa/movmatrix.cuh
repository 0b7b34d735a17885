// movmatrix: the transpose of an 8 by 8 matrix of 16-bit elements that a warp holds.
#pragma once

#include "ir/scalar_math.h"

#if SINTER_HAS_MMA
namespace sinter {

/// Lane 4 g + q gives elements 2q and 2q + 1 of row g, the first in the low half, and gets the same
/// elements of column g.
SINTER_DEVICE unsigned movmatrix_trans(unsigned word) {
  unsigned result;
  asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(result) : "r"(word));
  return result;
}

}  // namespace sinter
#endif
