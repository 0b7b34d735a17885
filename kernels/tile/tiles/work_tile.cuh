// The part of a product that a block computes at a time.
#pragma once

namespace sinter {

/// Rows of the result from `token` on, and rows of the matrix from `matrix_row` on.
struct WorkTile {
  int token, matrix_row;
};

}  // namespace sinter
