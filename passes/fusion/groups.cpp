#include "passes/fusion/groups.h"

#include <algorithm>

namespace sinter {

Groups::Groups(const FusionProblem& problem)
    : dag_(problem.graph()), shapes_(problem.graph().size()) {
  for (uint32_t i = 0; i < shapes_.size(); ++i)
    if (computes(problem.graph().ops()[i])) shapes_[i] = shape_of(problem, {i});
}

void Groups::merge(const Decision& decision) {
  SINTER_CHECK(decision.verdict.reason == Reason::fused && decision.merges == merges_,
               "a decision of {} merges after {}: {}", decision.merges, merges_,
               reason_id(decision.verdict.reason));
  shapes_[dag_.merge(decision.first, decision.second)] = decision.merged;
  ++merges_;
}

namespace {

/// Leading axes of a group's rows, as the grouping tells them to code generation.
uint32_t prefix_rank(const FusionProblem& problem, uint32_t representative,
                     const GroupShape& shape) {
  if (shape.lone) {
    const size_t rank = problem.facts({representative}).dims.size();
    const auto* axes = problem.graph()[{representative}].attrs.find(AttrName::axes);
    return static_cast<uint32_t>(rank -
                                 (axes ? std::get<std::vector<int64_t>>(*axes).size() : rank));
  }
  return shape.closed() ? 0 : shape.rows;
}

}  // namespace

Grouping Groups::grouping(const FusionProblem& problem) const {
  const Graph& graph = problem.graph();
  Grouping result;
  result.group_of.assign(graph.size(), UINT32_MAX);
  std::vector<std::pair<uint32_t, uint32_t>> order;  // position, representative
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (computes(graph.ops()[i]) && find({i}) == i) order.push_back({dag_.position(i), i});
  std::sort(order.begin(), order.end());
  for (const auto& [position, representative] : order) {
    for (ValueId member : members(representative))
      result.group_of[member.index] = static_cast<uint32_t>(result.groups.size());
    result.groups.push_back({llvm::SmallVector<ValueId, 4>(members(representative)),
                             prefix_rank(problem, representative, shapes_[representative]),
                             {}});
  }
  return result;
}

}  // namespace sinter
