// The part of a product that a block computes at a time.
#pragma once

namespace sinter {

// Rows of the result from `token` on, and rows of the matrix from `matrix_row` on. With runs also
// the number of the run, the first row of the result behind the run's, and, where a run is summed,
// its first row and the one behind its last.
struct WorkTile {
  int token, matrix_row;
  int group = 0, end = 0;
  int first = 0, last = 0;
};

}  // namespace sinter
