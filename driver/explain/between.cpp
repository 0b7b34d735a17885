#include "driver/explain/between.h"

#include <tuple>

namespace sinter {

std::vector<ValueId> path_between(const Graph& graph, ValueId a, ValueId b) {
  const ValueId first = std::min(a, b), last = std::max(a, b);
  // An op comes after its operands, so that one pass finds how far each op is from `first`.
  std::vector<uint32_t> steps(graph.size(), UINT32_MAX);
  std::vector<ValueId> before(graph.size());
  steps[first.index] = 0;
  for (uint32_t i = first.index + 1; i <= last.index; ++i)
    for (ValueId operand : graph.ops()[i].operands) {
      const ValueId root = root_of(graph, operand);
      if (steps[root.index] == UINT32_MAX) continue;
      const uint32_t onward = steps[root.index] + 1;
      if (std::tie(steps[i], before[i]) <= std::tie(onward, root)) continue;
      steps[i] = onward;
      before[i] = root;
    }
  if (first == last || steps[last.index] == UINT32_MAX) return {};
  std::vector<ValueId> path;
  for (ValueId at = last; at != first; at = before[at.index]) path.push_back(at);
  path.push_back(first);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace sinter
