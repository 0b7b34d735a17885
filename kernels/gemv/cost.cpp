// The cost of a kernel around a product: the matrix is read from memory once, the inputs of the
// prologue from the cache by every block.
#include "kernels/cost.h"

#include <algorithm>

namespace sinter {

std::optional<KernelCost> gemv_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const DeviceDescription& device = problem.device();
  const ValueId anchor = group.anchor();
  // Every block reads the prologue's inputs again. These kernels are made for one token: its inputs
  // count.
  const llvm::SmallVector<ValueId, 8> prologue = problem.up_to(anchor, group.members);
  double again = 0;
  for (ValueId member : prologue)
    for (const Read& read : problem.facts(member).reads) {
      if (member == anchor || llvm::is_contained(prologue, read.root) || read.loaded) continue;
      const Dims& dims = graph[read.root].type.dims;
      const double tokens = dims.empty() || dims[0].is_constant() ? 1 : problem.extent(dims[0]);
      again += problem.bytes(read.root) / tokens;
    }
  // Where there are fewer classes of rows than multiprocessors, the others read nothing.
  const auto blocks =
      static_cast<double>(std::min<int64_t>(group.shape.max_blocks, device.multiprocessors));
  const double share = blocks / static_cast<double>(device.multiprocessors);
  const double seconds =
      device.launch_s + memory_seconds(device, moved(problem, group.members)) / share +
      again * static_cast<double>(device.multiprocessors) / device.cache_bytes_per_s;
  return KernelCost{.seconds = seconds, .blocks = blocks};
}

}  // namespace sinter
