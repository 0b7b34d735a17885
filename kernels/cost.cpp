#include "kernels/cost.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>

#include "ir/op_flops.h"
#include "kernels/family.h"

namespace sinter {

double launch_seconds(const DeviceDescription& device, double blocks, double bytes) {
  // A device is full at about two blocks per multiprocessor; fewer move fewer bytes per second.
  const double share =
      std::clamp(blocks / (2.0 * static_cast<double>(device.multiprocessors)), 1e-3, 1.0);
  return device.launch_s + bytes / (device.memory_bytes_per_s * share);
}

KernelCost product_cost(const GroupView& group, double blocks, int64_t threads) {
  const FusionProblem& problem = group.problem;
  const DeviceDescription& device = problem.device();
  const Op& op = problem.graph()[group.anchor()];
  const double operations = flops(problem.graph(), op, {problem.symbols(), problem.sizes()}) /
                            flops_per_s(device, op.type.dtype);
  return {.seconds =
              std::max(launch_seconds(device, 2 * blocks, problem.traffic(group.members).total()),
                       device.launch_s + operations),
          .blocks = blocks,
          .threads = threads};
}

std::optional<KernelCost> kernel_cost(const FusionProblem& problem, Members members,
                                      const GroupShape& shape, int64_t min_threads) {
  return shape.family->cost({.problem = problem, .members = members, .shape = shape}, min_threads);
}

double kernel_seconds(const FusionProblem& problem, llvm::ArrayRef<PartView> parts) {
  // Blocks of one kernel have as many threads as its widest part needs.
  int64_t threads = 1;
  llvm::SmallVector<KernelCost, 4> alone;
  for (const PartView& part : parts) {
    const auto own = kernel_cost(problem, part.members, part.shape);
    if (!own) return INFINITY;
    alone.push_back(*own);
    threads = std::max(threads, own->threads);
  }
  if (parts.size() == 1) return alone[0].seconds;
  double blocks = 0, bytes = 0;
  for (const auto& [part, own] : llvm::zip(parts, alone)) {
    const auto widened = kernel_cost(problem, part.members, part.shape, threads);
    if (!widened || (own.on_chip && !widened->on_chip)) return INFINITY;
    blocks += widened->blocks;
    bytes += problem.traffic(part.members).total();  // what parts share, each reads for itself
  }
  return launch_seconds(problem.device(), blocks, bytes);
}

std::optional<KernelCost> streaming_cost(const GroupView& group, int64_t) {
  const DeviceDescription& device = group.problem.device();
  const double blocks = 2 * static_cast<double>(device.multiprocessors);
  return KernelCost{
      .seconds = launch_seconds(device, blocks, group.problem.traffic(group.members).total()),
      .blocks = blocks};
}

}  // namespace sinter
