#include "passes/cost_model.h"

#include <algorithm>

namespace sinter {

double launch_seconds(const DeviceDescription& device, double blocks, double bytes) {
  // A device is full at about two blocks per multiprocessor; fewer move fewer bytes per second.
  const double share =
      std::clamp(blocks / (2.0 * static_cast<double>(device.multiprocessors)), 1e-3, 1.0);
  return device.launch_s + bytes / (device.memory_bytes_per_s * share);
}

std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t least_threads) {
  if (shape.columns) return column_cost(problem, members, shape);
  if (shape.anchor) return anchored_cost(problem, members, shape);
  return row_cost(problem, members, shape, least_threads);
}

}  // namespace sinter
