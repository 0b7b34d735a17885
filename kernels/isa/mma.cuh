// mma.m16n8k16: a product of a warp on tensor cores, 16-bit elements, float32 sums.
//
// Fragments, two elements in a word, the first in its low half; lane = 4 g + q:
//   A, 16 rows of 16:   a0 row g, elements 2q and 2q + 1; a1 row g + 8; a2 and a3 the same rows,
//                       elements 2q + 8 and 2q + 9
//   B, 16 by 8 columns: b0 column g, elements 2q and 2q + 1; b1 elements 2q + 8 and 2q + 9
//   sums, 16 by 8:      0, 1: row g, columns 2q and 2q + 1; 2, 3: row g + 8
//
// The order in which the hardware adds the 16 products is its own.
#pragma once

#include "kernels/common/vector.cuh"

#if SINTER_HAS_MMA
namespace sinter {

/// sums += a b. The pointer, which may be null, tells the type of the elements.
SINTER_DEVICE void mma_m16n8k16(float (&sums)[4], const f16*, unsigned a0, unsigned a1, unsigned a2,
                                unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
SINTER_DEVICE void mma_m16n8k16(float (&sums)[4], const bf16*, unsigned a0, unsigned a1,
                                unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace sinter
#endif
