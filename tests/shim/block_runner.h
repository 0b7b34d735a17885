// Runs kernels block by block, or cluster by cluster: every CUDA thread of the blocks that run
// together is a fiber.
#pragma once

#include <cstdint>
#include <string_view>

#include "ir/error.h"
#include "shim/shim_interface.h"

namespace sinter {

struct Grid {
  sinter_shim::Index3 blocks{1, 1, 1};
  sinter_shim::Index3 threads{1, 1, 1};  // of a block
  int64_t shared_bytes = 0;              // of dynamic shared memory
  unsigned cluster = 1;                  // blocks of a cluster, neighbours along x
};

/// In which order blocks, and threads between two barriers, take their turns. A kernel without
/// races gives the same result in any.
enum class ThreadOrder : uint8_t { ascending, descending, shuffled };
inline constexpr ThreadOrder kThreadOrders[] = {ThreadOrder::ascending, ThreadOrder::descending,
                                                ThreadOrder::shuffled};

/// The table of calls that compiled kernel text is given; there is one runner in a process.
const sinter_shim::Calls* runner_calls();

/// Runs all blocks. Fails where CUDA would hang or be undefined: a barrier that only a part of the
/// block or the cluster reaches (or that a thread's return makes unreachable), different barriers
/// at the same time, arrivals in a cluster without a wait, writes to a block that may not have
/// begun, shuffles whose mask lacks the caller or that read a lane which takes no part, shared
/// memory beyond its declaration or the device's limit, undefined behaviour that a compiler's check
/// traps. `name` is for messages. Not reentrant.
Status run_grid(std::string_view name, sinter_shim::KernelEntry kernel, const Grid& grid,
                void** arguments, ThreadOrder order = ThreadOrder::ascending);

}  // namespace sinter
