// The order of run_sums: a reduction down columns (reduction_order.h), stopped when `runs` partial
// sums of each column are left.
//
// The rows of an operand [..., D] are counted row-major. Chunk c of 8 rows belongs to virtual lane
// c mod V, and a lane takes its chunks, and a chunk's rows, in ascending order, from +0. The
// butterfly of the reduction has ascending strides, so that it is a balanced tree over neighbouring
// lanes: the lanes r * V / runs up to (r + 1) * V / runs - 1 are run r, and combine by themselves.
// The rest of the tree joins the runs. A reduction over [runs, 8, D] adds in this order where the
// first row of each 8 is the sum of a run and the others are zeros, since no sum of a lane is -0.
#pragma once

#include "ir/reduction_order.h"

namespace sinter {

// A block of threads walks the rows of all lanes of a run and keeps their sums in registers.
inline constexpr int64_t kMaxLanesOfRun = 8;
inline constexpr int64_t kMaxColumnsOfRuns = 8192;
/// Lanes of a run times columns: half of their sums pass through shared memory at once.
inline constexpr int64_t kMaxSumsOfRun = 16384;

/// V for the rows of an operand of these dims, which are constants.
inline int64_t column_lanes(DimsRef dims) {
  int64_t rows = 1;
  for (Dim dim : dims.drop_back()) rows *= dim.constant();
  return virtual_lanes(rows);
}

}  // namespace sinter
