// The form of a kernel of rows that sums down their columns beside.
//
// A block has a run of virtual lanes (ir/column_runs.h), and side by side a row of each of
// them. The threads of a row walk the rows of its lane one after the other, and have the same
// columns in each, so that the sums stay in their registers: 8 for each chunk and each sum.
//
// A row has a warp where its elements and sums fit into the registers of 32 threads: its reductions
// need no barrier, and the rows of a block go on without one another. A loop over the rows has the
// loads of a whole row under way. One H100, LayerNorm's gradient of bf16 dy, f32 x, residual and
// dx, and dx in bf16, cold, us; the row kernel and the column kernel took 129.5 + 60.4, a copy of
// the same number of bytes 134.4:
//   [32768, 768], threads of a row x lanes of a block   32 x 8: 137.9   128 x 1: 137.9
//   the same, prefetching the row 1, 2 or 4 later into the second-level cache: 163, 187, 197
// Joining 128, 256, 512 and 1024 runs: 5.2, 5.9, 7.2 and 12.2.
// [4096, 768], which took 17.0 + 13.4: 32 x 4: 20.8   128 x 1: 18.8, and 5.3 and 7.1 to join. With
// 2,048 rows of 1152 there is nothing to gain: 14.2 + 10.7, and 20.6 + 5.7.
#pragma once

#include <optional>

#include "codegen/emission/row_config.h"
#include "device/device.h"

namespace sinter {

struct RunSumsProblem {
  RowProblem rows;
  int64_t lanes = 1;  // of a run
  int64_t sums = 1;   // for each column
};

/// `on_chip`: elements and sums fit into the registers. nullopt: a block of the device has too few
/// threads.
std::optional<RowConfig> schedule_run_sums(const RunSumsProblem& problem,
                                           const DeviceDescription& device);

/// Rows that a lane walks one after the other, of `rows` rows in all.
int64_t rows_of_lane(int64_t rows);

}  // namespace sinter
