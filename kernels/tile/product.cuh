// Products of tiles in shared memory by a warpgroup.
#pragma once

#include "kernels/isa/wgmma.cuh"
#include "kernels/tile/layout.h"

#if SINTER_HAS_WGMMA
namespace sinter {

// Issues sums = A Bᵀ, or sums += A Bᵀ if `adds`: A has 64 rows, from row `first_row` of a tile of
// `a_rows` on, B is a tile of `columns` rows; both of `width` elements a row, padded. A step of 16
// elements follows the other. The descriptors are made before the fence: the compiler moves no
// instruction across it, and the first product would wait for them. wgmma_commit_group() comes
// after.
template <typename T, int a_rows, int columns, int width>
SINTER_DEVICE void multiply_tiles(float (&sums)[columns / 2], const unsigned char* a, int first_row,
                                  const unsigned char* b, bool adds) {
  constexpr int row_bytes = tile_panel_row(width);
  constexpr int panel = row_bytes / 2;  // elements of a row of a panel
  const MatrixDescriptor first =
      matrix_descriptor<row_bytes>(a + first_row * row_bytes, 8 * row_bytes, 16);
  const MatrixDescriptor second = matrix_descriptor<row_bytes>(b, 8 * row_bytes, 16);
  wgmma_fence(sums);
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    const int in_panel = k % panel * 2;
    Wgmma<columns, T>::mma_async_ss(
        sums, first.advanced(k / panel * tile_panel(a_rows, width) + in_panel),
        second.advanced(k / panel * tile_panel(columns, width) + in_panel), adds || k > 0);
  }
}

}  // namespace sinter
#endif
