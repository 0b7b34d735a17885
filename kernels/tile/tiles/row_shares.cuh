// Tiles of a product whose tokens are one tile: each block has the same share of the matrix's rows.
#pragma once

#include "ir/scalar_math.h"
#include "kernels/tile/tiles/work_tile.cuh"

namespace sinter {

// Block b of n has the b-th of n shares, which differ by at most `unit` rows, and walks it by tiles
// of `rows` rows; its last tile has fewer, a multiple of `unit`.
template <int unit, int rows, int matrix_rows>
class RowShares {
  static constexpr long long kUnits = (matrix_rows + unit - 1) / unit;

 public:
  SINTER_DEVICE RowShares(const int*, int)
      : first_(first_row(blockIdx.x)), end_(first_row(blockIdx.x + 1)) {}

  template <int steps>
  static SINTER_DEVICE int steps_of(const WorkTile&) {
    return steps;
  }
  static SINTER_DEVICE int first_matrix_row(const WorkTile& tile) { return tile.matrix_row; }
  static SINTER_DEVICE int end(const WorkTile&, int tokens) { return tokens; }

  SINTER_DEVICE bool has(int round) const { return first_ + round * rows < end_; }
  SINTER_DEVICE WorkTile tile(int round) const { return {0, first_ + round * rows}; }
  SINTER_DEVICE int rows_of(const WorkTile& tile) const {
    const int left = end_ - tile.matrix_row;
    return left < rows ? left : rows;
  }

 private:
  static SINTER_DEVICE int first_row(unsigned block) {
    return static_cast<int>(block * kUnits / gridDim.x) * unit;
  }

  int first_, end_;
};

}  // namespace sinter
