// The machine that orders of summation are chosen for.
#pragma once

#include <cstdint>

namespace sinter {

/// A plan's bits must not depend on the device that it is compiled for, and the fused and the
/// unfused plan of a module must agree. So passes that choose the number of splits of a sum ask
/// this one machine and no DeviceDescription. It is the H200, which the kernels are tuned on;
/// devices of another size run the same splits, with some of their multiprocessors less busy.
struct ReferenceMachine {
  int64_t multiprocessors;
  /// Blocks of clusters that run at the same time, each with a multiprocessor of its own: fewer
  /// than multiprocessors, since the blocks of a cluster share a group of them.
  int64_t cluster_blocks;
};
inline constexpr ReferenceMachine kReference{.multiprocessors = 132, .cluster_blocks = 108};

}  // namespace sinter
