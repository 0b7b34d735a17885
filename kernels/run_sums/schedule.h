// The form of a kernel of rows that sums down their columns beside.
//
// A block has a run of virtual lanes (ir/column_runs.h), and side by side a row of each of
// them. The threads of a row walk the rows of its lane one after the other, and have the same
// columns in each, so that the sums stay in their registers: 8 for each chunk and each sum.
//
// A row has a warp where its elements and sums fit into the registers of 32 threads: its reductions
// need no barrier, and the rows of a block go on without one another. While a row is computed, the
// one after the next is prefetched into the second-level cache.
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
