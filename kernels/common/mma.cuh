// Products of a warp on tensor cores (mma.m16n8k16), and loads of their fragments from shared
// memory (ldmatrix).
//
// Fragments of 16-bit elements, two in a word, the first in its low half; lane = 4 g + q:
//   A, 16 rows of 16:  a0 row g, elements 2q and 2q + 1; a1 row g + 8; a2 and a3 the same rows,
//                      elements 2q + 8 and 2q + 9
//   B, 16 by 8 columns: b0 column g, elements 2q and 2q + 1; b1 elements 2q + 8 and 2q + 9
//   sums, 16 by 8:     0, 1: row g, columns 2q and 2q + 1; 2, 3: row g + 8
//
// Which order the hardware adds in is its own. The CPU of the tests adds 16 products to a sum in
// float64, elements ascending, and rounds (multiply_step).
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

#ifdef __CUDACC_RTC__
#if SINTER_HAS_MMA
// sums += a b
SINTER_DEVICE void multiply_tile(float (&sums)[4], const f16*, unsigned a0, unsigned a1,
                                 unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
SINTER_DEVICE void multiply_tile(float (&sums)[4], const bf16*, unsigned a0, unsigned a1,
                                 unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
// Four matrices of 8 rows of 8 elements; lane i gives the address of row i % 8 of matrix i / 8. A
// lane gets of each matrix elements 2q and 2q + 1 of row g.
SINTER_DEVICE void load_matrices(unsigned (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
// Transposed: of each matrix element g of the rows 2q and 2q + 1.
SINTER_DEVICE void load_transposed(unsigned (&words)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}
#endif
#else
// The fragments and row addresses that the lanes of a warp exchange.
struct WarpWords {
  unsigned words[32][6];
  const unsigned short* rows[32];
};
SINTER_DEVICE WarpWords& words_of_warp() {
  static WarpWords all[32];
  return all[threadIdx.x / 32];
}
// sum + the products of 16 elements
template <typename ElementA, typename ElementB>
float multiply_step(float sum, ElementA a, ElementB b) {
  double exact = sum;
  for (int k = 0; k < 16; ++k) exact += static_cast<double>(a(k)) * static_cast<double>(b(k));
  return static_cast<float>(exact);
}
template <typename T>
SINTER_DEVICE void multiply_tile(float (&sums)[4], const T* p, unsigned a0, unsigned a1,
                                 unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  WarpWords& warp = words_of_warp();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned own[6] = {a0, a1, a2, a3, b0, b1};
  for (int i = 0; i < 6; ++i) warp.words[lane][i] = own[i];
  __syncwarp();
  const auto element = [&](unsigned word, int k) {
    return low_half(p, k % 2 == 0 ? word & 0xffffu : word >> 16);
  };
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, lower = i / 2, column = 2 * (lane % 4) + i % 2;
    sums[i] = multiply_step(
        sums[i],
        [&](int k) { return element(warp.words[4 * row + k % 8 / 2][lower + k / 8 * 2], k); },
        [&](int k) { return element(warp.words[4 * column + k % 8 / 2][4 + k / 8], k); });
  }
  __syncwarp();
}
template <typename Row>
SINTER_DEVICE void show_rows(const void* row, Row take) {
  WarpWords& warp = words_of_warp();
  warp.rows[threadIdx.x % 32] = static_cast<const unsigned short*>(row);
  __syncwarp();
  take(warp.rows);
  __syncwarp();
}
SINTER_DEVICE void load_matrices(unsigned (&words)[4], const void* row) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  show_rows(row, [&](const unsigned short* const(&rows)[32]) {
    for (int m = 0; m < 4; ++m)
      words[m] = rows[8 * m + g][2 * q] | static_cast<unsigned>(rows[8 * m + g][2 * q + 1]) << 16;
  });
}
SINTER_DEVICE void load_transposed(unsigned (&words)[4], const void* row) {
  const int g = threadIdx.x % 32 / 4, q = threadIdx.x % 4;
  show_rows(row, [&](const unsigned short* const(&rows)[32]) {
    for (int m = 0; m < 4; ++m)
      words[m] = rows[8 * m + 2 * q][g] | static_cast<unsigned>(rows[8 * m + 2 * q + 1][g]) << 16;
  });
}
#endif

}  // namespace sinter
