// The cost of a library call around a product: its bytes or its operations, whatever takes longer.
#include "kernels/cost.h"

#include <algorithm>

#include "ir/op_flops.h"
#include "ir/op_roles.h"

namespace sinter {

std::optional<KernelCost> gemm_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const DeviceDescription& device = problem.device();
  double seconds = problem.traffic(group.members).total() / device.memory_bytes_per_s;
  for (ValueId member : group.members) {
    const Op& op = graph[member];
    if (op_class(op) != OpClass::contraction) continue;
    const DType operands = graph[op.operands[0]].type.dtype;
    seconds = std::max(seconds, flops(graph, op, {problem.symbols(), problem.sizes()}) /
                                    flops_per_s(device, operands));
  }
  return KernelCost{.seconds = device.launch_s + seconds,
                    .blocks = 2 * static_cast<double>(device.multiprocessors)};
}

}  // namespace sinter
