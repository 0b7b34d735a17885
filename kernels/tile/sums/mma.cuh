// Products of tiles in shared memory by a warp, of 16 rows (mma.sync).
#pragma once

#include "kernels/isa/ldmatrix.cuh"
#include "kernels/tile/sums/fragment.cuh"

namespace sinter {

// sums = A Bᵀ of a warp's 16 rows of tile `a` and all rows of tile `b`.
template <typename T, int a_rows, int b_rows, int width>
SINTER_DEVICE void multiply_tiles_by_warp(float (&sums)[b_rows / 2], const unsigned char* a,
                                          int row0, const unsigned char* b) {
#pragma unroll
  for (float& sum : sums) sum = 0.0f;
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    unsigned rows[4];
    ldmatrix_x4(rows, part_rows_first<a_rows, width>(a, row0, k));
#pragma unroll
    for (int column = 0; column < b_rows; column += 16) {
      unsigned columns[4];
      ldmatrix_x4(columns, part_columns_first<b_rows, width>(b, column, k));
      mma_m16n16k16<T>(sums, column, rows, columns);
    }
  }
}
// sums += A B of fragments of 16 rows and tile `b`.
template <typename T, int rows, int width>
SINTER_DEVICE void multiply_rows_by_warp(float (&sums)[width / 2],
                                         const unsigned (&words)[rows / 4],
                                         const unsigned char* b) {
#pragma unroll
  for (int row = 0; row < rows; row += 16)
#pragma unroll
    for (int column = 0; column < width; column += 16) {
      unsigned columns[4];
      ldmatrix_x4_trans(columns, part_rows_first<rows, width>(b, row, column));
      mma_m16n16k16<T>(sums, column, words + row / 4, columns);
    }
}

}  // namespace sinter
