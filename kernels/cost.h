// The time of a launch, from the bytes that it moves and the blocks that move them.
#pragma once

#include <optional>

#include "kernels/group.h"

namespace sinter {

struct KernelCost {
  double seconds = 0;
  double blocks = 0;    // of the launch
  int64_t threads = 0;  // of a block
  bool on_chip = true;  // elements needed again stay in registers
};

/// A kernel of the group, each of its blocks at least `min_threads` wide, as its family has it.
/// nullopt: no configuration fits the device.
std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t min_threads = 1);

/// A group that has blocks of its own in a kernel.
struct PartView {
  Members members;
  const GroupShape& shape;
};
/// Time of a launch of these groups side by side, or of one alone. INFINITY: no configuration of
/// all of them fits the device.
double kernel_seconds(const FusionProblem& problem, llvm::ArrayRef<PartView> parts);

/// Time in seconds of a launch of `blocks` blocks that moves `bytes` bytes.
double launch_seconds(const DeviceDescription& device, double blocks, double bytes);

/// The cost of a kernel of products, of that many blocks: the group's bytes or its anchor's
/// operations, whichever take longer.
KernelCost product_cost(const GroupView& group, double blocks, int64_t threads);
/// The cost for families that neighbours cannot join: a full device moves the group's bytes.
std::optional<KernelCost> streaming_cost(const GroupView& group, int64_t min_threads);

}  // namespace sinter
