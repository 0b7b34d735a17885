#include "kernels/cost.h"

#include <algorithm>

#include "kernels/family.h"
#include "kernels/traffic.h"

namespace sinter {

double launch_seconds(const DeviceDescription& device, double blocks, double bytes) {
  // A device is full at about two blocks per multiprocessor; fewer move fewer bytes per second.
  const double share =
      std::clamp(blocks / (2.0 * static_cast<double>(device.multiprocessors)), 1e-3, 1.0);
  return device.launch_s + bytes / (device.memory_bytes_per_s * share);
}

std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t min_threads) {
  return shape.family->cost({.problem = problem, .members = members, .shape = shape}, min_threads);
}

std::optional<KernelCost> streaming_cost(const GroupView& group, int64_t) {
  const DeviceDescription& device = group.problem.device();
  const double blocks = 2 * static_cast<double>(device.multiprocessors);
  return KernelCost{
      .seconds = launch_seconds(device, blocks, traffic(group.problem, group.members)),
      .blocks = blocks};
}

}  // namespace sinter
