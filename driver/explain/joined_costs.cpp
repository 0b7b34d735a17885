#include "driver/explain/joined_costs.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>

#include "ir/op_flops.h"
#include "kernels/family.h"

namespace sinter {

JoinedCosts::JoinedCosts(const Fusion& fusion, const FusionCosts& costs)
    : fusion_(fusion), costs_(costs) {
  const FusionProblem& problem = costs.problem();
  const Graph& graph = problem.graph();
  for (const Group& group : fusion.grouping.groups) {
    Kernel kernel{.seconds = costs.seconds(group)};
    for (const PartView& part : costs.parts(group))
      if (const auto cost = kernel_cost(problem, part.members, part.shape))
        kernel.blocks +=
            part.shape.family->kind == KernelFamily::Kind::rows ? cost->blocks : 2 * cost->blocks;
    for (ValueId id : group.members)
      if (const Op& op = graph[id]; problem.family(id) && !op.operands.empty())
        kernel.operations += flops(graph, op, {problem.symbols(), problem.sizes()}) /
                             flops_per_s(problem.device(), graph[op.operands[0]].type.dtype);
    kernel.beyond =
        kernel.seconds - formula(kernel.blocks, moved(problem, group.members), kernel.operations);
    kernels_.push_back(kernel);
  }
}

double JoinedCosts::formula(double blocks, const Moved& moved, double operations) const {
  const DeviceDescription& device = costs_.problem().device();
  return std::max(launch_seconds(device, blocks, moved), device.launch_s + operations);
}

std::vector<ValueId> JoinedCosts::members(llvm::ArrayRef<uint32_t> groups) const {
  std::vector<ValueId> all;
  for (uint32_t group : groups) llvm::append_range(all, fusion_.grouping.groups[group].members);
  llvm::sort(all);
  return all;
}

Bytes JoinedCosts::bytes(llvm::ArrayRef<uint32_t> groups) const {
  return costs_.problem().traffic(members(groups));
}

double JoinedCosts::seconds(llvm::ArrayRef<uint32_t> groups) const {
  if (groups.size() == 1) return seconds(groups[0]);
  Kernel joined;
  for (uint32_t group : groups) {
    const Kernel& one = kernels_[group];
    joined.blocks = std::max(joined.blocks, one.blocks);
    joined.operations += one.operations;
    joined.beyond += one.beyond;
  }
  return formula(joined.blocks, moved(costs_.problem(), members(groups)), joined.operations) +
         joined.beyond;
}

}  // namespace sinter
