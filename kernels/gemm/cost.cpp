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
  const Op& product = graph[group.anchor()];
  const DType operands = graph[product.operands[0]].type.dtype;
  const double bytes = problem.traffic(group.members).total() / device.memory_bytes_per_s,
               operations = flops(graph, product, {problem.symbols(), problem.sizes()}) /
                            flops_per_s(device, operands);
  return KernelCost{.seconds = device.launch_s + std::max(bytes, operations),
                    .blocks = 2 * static_cast<double>(device.multiprocessors)};
}

}  // namespace sinter
