// The cost of a kernel that walks columns: what it moves, and the blocks that share the rows.
#include "kernels/cost.h"

#include <cmath>

#include "ir/reduction_order.h"
#include "kernels/column/schedule.h"

namespace sinter {

std::optional<KernelCost> column_cost(const GroupView& group, int64_t) {
  const FusionProblem& fusion = group.problem;
  const Members members = group.members;
  const Graph& graph = fusion.graph();
  const ColumnSpace& space = *group.shape.columns;
  ColumnProblem problem{.outer = volume(space.outer()), .width = volume(space.inner())};
  problem.reductions = problem.operand_bytes = 0;
  llvm::SmallVector<ValueId, 4> operands;
  for (ValueId member : members) {
    for (const Read& read : fusion.facts(member).reads) {
      const TensorType& type = graph[read.root].type;
      if (llvm::is_contained(members, read.root) || volume(type.dims) != volume(space.dims) ||
          llvm::is_contained(operands, read.root))
        continue;
      operands.push_back(read.root);
      const int64_t bytes = dtype_info(type.dtype).bits / 8;
      problem.element_bytes = std::max(problem.element_bytes, bytes);
      problem.operand_bytes += bytes;
    }
    const Op& op = graph[member];
    if (op_class(op) != OpClass::reduce) continue;
    ++problem.reductions;
    problem.lanes = virtual_lanes(space.dims, op.attrs.get<std::vector<int64_t>>(AttrName::axes));
  }
  problem.stores_elements = fusion.traffic(members).written >= fusion.count(volume(space.dims));
  const auto config = schedule_columns(problem, fusion.symbols(), fusion.device());
  if (!config) return std::nullopt;
  const double blocks =
      fusion.count(problem.outer) *
      std::ceil(fusion.count(problem.width) / static_cast<double>(config->tile())) *
      static_cast<double>(config->segments);
  // A thread keeps 8 rows in flight, like 4 threads of a pointwise kernel: occupancy is counted in
  // blocks of 256 pointwise threads.
  const double busy = blocks * static_cast<double>(config->threads()) / 64;
  const double seconds = launch_seconds(fusion.device(), busy, moved(fusion, members),
                                        arithmetic_seconds(fusion, members));
  return KernelCost{seconds, blocks, config->threads(), true};
}

}  // namespace sinter
