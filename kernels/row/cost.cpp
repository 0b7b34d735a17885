// The cost of a kernel that walks rows: what the rows hold, as the schedule is asked for it.
#include "kernels/row/cost.h"

#include <algorithm>
#include <cmath>

#include "ir/reduction_order.h"
#include "kernels/row/schedule.h"

namespace sinter {
namespace {

// Rows that do not begin at multiples of an access are stored element by element, each into a
// sector of its own: a thread's next element lies in the chunk's next store.
constexpr int64_t kAccessBytes = 16;

struct RowWork {
  RowProblem problem;
  double chunks = 0;        // of a row in all stages, at the sizes of the costs
  double single_bytes = 0;  // of a row's results that are stored element by element
};

RowWork row_work(const GroupView& group) {
  const FusionProblem& fusion = group.problem;
  const GroupShape& shape = group.shape;
  RowWork work;
  RowProblem& problem = work.problem;
  problem.rows = volume(DimsRef(shape.prefix).take_front(shape.rows));
  problem.reductions = 0;
  llvm::SmallVector<SymExpr, 2> widths;  // of problem.stages
  for (ValueId member : group.members) {
    const OpFacts& facts = fusion.facts(member);
    const DimsRef walked = facts.walked();
    const DimsRef inner = walked.drop_front(std::min<size_t>(shape.rows, walked.size()));
    const SymExpr width = volume(inner);
    const auto at = llvm::find(widths, width);
    const size_t stage = at - widths.begin();
    if (at == widths.end()) {
      widths.push_back(width);
      const int64_t elements = width.upper_bound(fusion.symbols());
      problem.stages.push_back(
          {.chunks = ceil_div(elements, kChunk), .symbolic = !width.is_constant()});
      work.chunks += std::ceil(fusion.count(width) / static_cast<double>(kChunk));
    }
    const int64_t bits = dtype_info(fusion.graph()[member].type.dtype).bits;
    if (!width.is(1) && !(width * SymExpr(bits)).divide_exactly(SymExpr(8 * kAccessBytes)) &&
        fusion.read_outside(member, group.members))
      work.single_bytes += fusion.count(width) * static_cast<double>(bits) / 8;
    if (!facts.reduces) continue;
    const int64_t lanes = width.is_constant() ? virtual_lanes(width.constant()) : kSymbolicLanes;
    problem.stages[stage].lanes = lanes;
    problem.stages[stage].kept_bytes += 4;
    ++problem.reductions;
  }
  return work;
}

}  // namespace

std::optional<KernelCost> row_cost(const GroupView& group, int64_t min_threads) {
  const FusionProblem& fusion = group.problem;
  auto [problem, chunks, single_bytes] = row_work(group);
  problem.min_threads = min_threads;
  const auto config = schedule_rows(problem, fusion.symbols(), fusion.device());
  if (!config) return std::nullopt;
  const double rows = fusion.count(problem.rows);
  // Without a reduction chunks, not rows, are spread over the blocks.
  const double blocks =
      problem.reductions > 0
          ? rows * static_cast<double>(config->blocks) / static_cast<double>(config->rows_per_block)
          : rows * chunks / static_cast<double>(config->threads);
  // Without a reduction a chunk goes on from a row to the next.
  const double singly =
      problem.reductions > 0 ? rows * single_bytes * kChunk / fusion.device().cache_bytes_per_s : 0;
  const double seconds =
      launch_seconds(fusion.device(), blocks, moved(fusion, group.members),
                     std::max(singly, arithmetic_seconds(fusion, group.members)));
  return KernelCost{seconds, blocks, config->threads, config->on_chip};
}

}  // namespace sinter
