// The time of a launch, from the bytes that it moves and the blocks that move them.
#pragma once

#include "passes/group_shape.h"

namespace sinter {

struct KernelCost {
  double seconds = 0;
  double blocks = 0;    // of the launch
  int64_t threads = 0;  // of a block
  bool on_chip = true;  // elements needed again stay in registers
};

/// A kernel of `members`, each of its blocks at least `least_threads` wide. nullopt: no
/// configuration fits the device.
std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t least_threads = 1);

/// Time of a launch of so many blocks that moves so many bytes.
double launch_seconds(const DeviceDescription& device, double blocks, double bytes);

// kernel_cost by kind of kernel.
/// A kernel of rows or of elements (row_cost.cpp).
std::optional<KernelCost> row_cost(const FusionProblem& problem, Members members,
                                   const GroupShape& shape, int64_t least_threads);
/// A kernel of columns (column_cost.cpp).
std::optional<KernelCost> column_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape);
/// A kernel around a product (anchored_cost.cpp).
KernelCost anchored_cost(const FusionProblem& problem, Members members, const GroupShape& shape);

}  // namespace sinter
