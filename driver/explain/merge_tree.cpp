#include "driver/explain/merge_tree.h"

namespace sinter {

MergeTree::MergeTree(const std::vector<GroupMerge>& merges) : parent_(merges.size()) {
  std::unordered_map<uint32_t, size_t> last;  // of an op
  for (size_t i = 0; i < merges.size(); ++i)
    for (const auto* side : {&merges[i].first, &merges[i].second}) {
      if (const auto at = last.find(side->front().index); at != last.end()) parent_[at->second] = i;
      for (const ValueId member : *side) {
        of_op_.try_emplace(member.index, i);
        last[member.index] = i;
      }
    }
}

std::optional<size_t> MergeTree::joining(ValueId a, ValueId b) const {
  const auto of_a = of_op_.find(a.index), of_b = of_op_.find(b.index);
  if (a == b || of_a == of_op_.end() || of_b == of_op_.end()) return std::nullopt;
  size_t x = of_a->second, y = of_b->second;
  while (x != y) {  // a parent comes after its parts
    size_t& earlier = x < y ? x : y;
    if (!parent_[earlier]) return std::nullopt;
    earlier = *parent_[earlier];
  }
  return x;
}

}  // namespace sinter
