// Products of tiles in shared memory by a warpgroup.
#pragma once

#include "kernels/isa/wgmma.cuh"
#include "kernels/tile/layout.h"
#include "kernels/tile/sums/fragment.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// The order in which a sum takes its steps: the `index`-th of `count`, both of the stages of a
// pipeline and of the steps of 16 elements in a stage.
struct AscendingSteps {
  static SINTER_DEVICE constexpr int at(int index, int) { return index; }
};

// Issues sums = A Bᵀ, or sums += A Bᵀ if `adds`: A has 64 rows for each of the sums, from row
// `first_row` of a tile of `a_rows` on, B is a tile of `columns` rows; both of `width` elements a
// row, padded. Or B is transposed, `b_transposed`: its tile has `width` rows of `columns` elements,
// in panels of 64; or both are, and there is one slab. Steps of 16 elements follow one another. The
// descriptors are made before the fence: the compiler moves no instruction across it, and the first
// product would wait for them. wgmma_commit_group() comes after.
template <typename T, int a_rows, int columns, int width, typename Steps = AscendingSteps,
          bool a_transposed = false, bool b_transposed = false, int slabs>
SINTER_DEVICE void multiply_slabs(float (&sums)[slabs][columns / 2], const unsigned char* a,
                                  int first_row, const unsigned char* b, bool adds) {
  constexpr int row_bytes = tile_panel_row(width);
  constexpr int panel = row_bytes / 2;  // elements of a row of a panel
  constexpr int steps = (width + 15) / 16;
  constexpr int b_row_bytes = b_transposed ? tile_panel_row(columns) : row_bytes;
  static_assert(!b_transposed || b_row_bytes == 128, "panels of 64 elements");
  static_assert(!a_transposed || (b_transposed && row_bytes == 128 && slabs == 1), "panels of 64");
  // 64 rows of a transposed A are a panel of `width` rows.
  constexpr int a_panel = tile_panel(width, kPanel);
  const MatrixDescriptor first = matrix_descriptor<row_bytes>(
      a + (a_transposed ? first_row / kPanel * a_panel : first_row * row_bytes), 8 * row_bytes,
      a_transposed ? a_panel : 16);
  const MatrixDescriptor second = matrix_descriptor<b_row_bytes>(
      b, 8 * b_row_bytes, b_transposed ? tile_panel(width, columns) : 16);
#pragma unroll
  for (int slab = 1; slab < slabs; ++slab) warpgroup_fence_operand(sums[slab]);
  wgmma_fence(sums[0]);
#pragma unroll
  for (int step = 0; step < steps; ++step) {
    const int k = 16 * Steps::at(step, steps);
    const int in_panel = k % panel * 2;
    const MatrixDescriptor of_b = second.advanced(
        b_transposed ? k * b_row_bytes : k / panel * tile_panel(columns, width) + in_panel);
#pragma unroll
    for (int slab = 0; slab < slabs; ++slab) {
      const MatrixDescriptor of_a = first.advanced(
          a_transposed ? k * row_bytes
                       : k / panel * tile_panel(a_rows, width) + in_panel + 64 * slab * row_bytes);
      Wgmma<columns, T>::template mma_async_ss<a_transposed, b_transposed>(sums[slab], of_a, of_b,
                                                                           adds || step > 0);
    }
  }
}
template <typename T, int a_rows, int columns, int width>
SINTER_DEVICE void multiply_tiles(float (&sums)[columns / 2], const unsigned char* a, int first_row,
                                  const unsigned char* b, bool adds) {
  multiply_slabs<T, a_rows, columns, width>(reinterpret_cast<float(&)[1][columns / 2]>(sums), a,
                                            first_row, b, adds);
}

// Issues sums += A B: A is a fragment in registers, 64 rows of `rows` elements, where words[4 s ..]
// belong to step s; B is a tile of `rows` rows of `width` elements, padded. The words are not
// overwritten before the products have ended.
template <typename T, int rows, int width>
SINTER_DEVICE void multiply_rows(float (&sums)[width / 2], const unsigned (&words)[rows / 4],
                                 const unsigned char* b) {
  constexpr int row_bytes = tile_panel_row(width), panel = tile_panel(rows, width);
  // An instruction has fewer registers than the launch gives to a thread.
  constexpr int first = width <= 192 ? width : 128, rest = width - first;
  const MatrixDescriptor second = matrix_descriptor<row_bytes>(b, 8 * row_bytes, panel);
  wgmma_fence(sums);
#pragma unroll
  for (int row = 0; row < rows; row += 16) {
    const MatrixDescriptor of_step = second.advanced(row * row_bytes);
    Wgmma<first, T>::mma_async_rs(sum_columns<0, first>(sums), words + row / 4, of_step);
    if constexpr (rest > 0)
      Wgmma<rest, T>::mma_async_rs(sum_columns<first, rest>(sums), words + row / 4,
                                   of_step.advanced(first * 2 / row_bytes * panel));
  }
}

}  // namespace sinter
#endif
