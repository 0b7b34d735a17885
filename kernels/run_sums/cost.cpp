// The cost of a kernel of rows that sums down their columns: what it moves, and the rows that a
// lane has one after the other.
#include "kernels/cost.h"

#include <cmath>

#include "ir/column_runs.h"
#include "kernels/run_sums/schedule.h"

namespace sinter {

std::optional<KernelCost> run_sums_cost(const GroupView& group, int64_t min_threads) {
  const FusionProblem& fusion = group.problem;
  const Graph& graph = fusion.graph();
  RunSumsProblem problem{.rows = {}, .lanes = 0, .sums = 0};
  int64_t rows = 0, runs = 0, kept_bytes = 0, width = 0;
  bool reduces = false;
  for (ValueId member : group.members) {
    const OpFacts& facts = fusion.facts(member);
    reduces |= facts.reduces && !facts.sums_runs;
    if (!facts.sums_runs) continue;
    const Op& op = graph[member];
    const int64_t lanes = column_lanes(facts.dims) / op.attrs.get<int64_t>(AttrName::runs);
    if (problem.lanes != 0 && lanes != problem.lanes) return std::nullopt;
    problem.lanes = lanes;
    problem.sums += static_cast<int64_t>(op.operands.size());
    runs = op.attrs.get<int64_t>(AttrName::runs);
    rows = volume(DimsRef(facts.dims).drop_back()).constant();
    width = std::max(width, facts.dims.back().constant());
  }
  for (const auto& [read, bytes] : fusion.reads(group.members))
    if (const TensorType& type = graph[read].type; volume(type.dims).is(rows * width))
      kept_bytes += whole_bytes(type.dtype);
  problem.rows.rows = SymExpr(rows);
  problem.rows.stages.push_back({.lanes = reduces ? virtual_lanes(width) : 0,
                                 .chunks = ceil_div(width, kChunk),
                                 .kept_bytes = kept_bytes});
  const auto config = schedule_run_sums(problem, fusion.device());
  if (!config || config->threads < min_threads) return std::nullopt;
  const auto blocks = static_cast<double>(runs);
  // A thread has a whole row's chunks under way: as much as four of a kernel of elements.
  const double busy = blocks * static_cast<double>(config->threads) / 64;
  const double streamed = launch_seconds(fusion.device(), busy, moved(fusion, group.members),
                                         arithmetic_seconds(fusion, group.members));
  const double in_turn = fusion.device().launch_s +
                         static_cast<double>(rows_of_lane(rows)) * fusion.device().latency_s;
  return KernelCost{std::max(streamed, in_turn), blocks, config->threads, true};
}

}  // namespace sinter
