// The part of a product that a block computes at a time.
#pragma once

namespace sinter {

// Rows of the result from `token` on, and rows of the matrix from `matrix_row` on; of tokens in
// runs also the run, whose matrix it is, and the first token behind it.
struct WorkTile {
  int token, matrix_row;
  int group = 0, end = 0;
};

}  // namespace sinter
