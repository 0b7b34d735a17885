#include "passes/horizontal.h"

#include <llvm/ADT/STLExtras.h>

#include <algorithm>
#include <cmath>

namespace sinter {

HorizontalFusion::HorizontalFusion(const FusionState& state)
    : state_(state), dag_(state.dag()), parts_(state.graph().size()) {
  for (uint32_t i = 0; i < parts_.size(); ++i) parts_[i] = {i};
}

// Readers of one value can run at about the same time: neither waits long for the other's operands.
// A weight says nothing of the time.
bool HorizontalFusion::share_a_value(ValueId a, ValueId b) const {
  return llvm::any_of(state_.facts(a).reads, [&](const Read& x) {
    return state_.graph()[x.root].kind != OpKind::weight &&
           llvm::any_of(state_.facts(b).reads, [&](const Read& y) { return x.root == y.root; });
  });
}

std::optional<Verdict> HorizontalFusion::judge(ValueId a, ValueId b) const {
  const uint32_t x = dag_.find(a), y = dag_.find(b);
  if (x == y) return std::nullopt;
  for (uint32_t kernel : {x, y})
    for (uint32_t part : parts_[kernel])
      if (const GroupShape& own = state_.shape(part); own.closed || own.lone || own.anchor)
        return std::nullopt;
  if (!share_a_value(a, b) || dag_.depends(x, y)) return std::nullopt;
  std::optional<Verdict> refusal = state_.constraints(dag_.members(x), dag_.members(y));
  if (!refusal) refusal = state_.states(dag_.members(x), dag_.members(y));
  if (!refusal) refusal = profit(x, y);
  return refusal ? *refusal : Verdict{Reason::fused_horizontal, "", {}, 0};
}

double HorizontalFusion::seconds(llvm::ArrayRef<uint32_t> parts) const {
  // Blocks of one kernel have as many threads as its widest part needs.
  int64_t threads = 1;
  double blocks = 0, bytes = 0;
  llvm::SmallVector<bool, 4> on_chip;
  for (uint32_t part : parts) {
    const auto own = state_.blocks(state_.dag().members(part), state_.shape(part));
    if (!own) return INFINITY;
    threads = std::max(threads, own->config.threads);
    on_chip.push_back(own->config.on_chip);
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto members = state_.dag().members(parts[i]);
    const auto widened = state_.blocks(members, state_.shape(parts[i]), threads);
    if (!widened || (on_chip[i] && !widened->config.on_chip)) return INFINITY;
    blocks += widened->count;
    bytes += state_.traffic(members);  // what parts read in common, each reads for itself
  }
  return state_.seconds(blocks, bytes);
}

std::optional<Verdict> HorizontalFusion::profit(uint32_t x, uint32_t y) const {
  llvm::SmallVector<uint32_t, 4> parts(parts_[x].begin(), parts_[x].end());
  parts.append(parts_[y].begin(), parts_[y].end());
  const size_t pointers = state_.pointers(dag_.members(x)) + state_.pointers(dag_.members(y));
  const double together = seconds(parts);
  if (std::isinf(together) || pointers > FusionState::kMostPointers)
    return refuse(Reason::profit_configuration,
                  fmt::format("{} parts, {} reads and results", parts.size(), pointers));
  const double apart = seconds(parts_[x]) + seconds(parts_[y]);
  if (together > apart)
    return refuse(Reason::profit_slower,
                  fmt::format("{:.2f} us together, {:.2f} us apart", together * 1e6, apart * 1e6));
  return std::nullopt;
}

void HorizontalFusion::merge(ValueId a, ValueId b) {
  uint32_t x = dag_.find(a), y = dag_.find(b);
  if (dag_.members(x)[0] > dag_.members(y)[0]) std::swap(x, y);
  llvm::SmallVector<uint32_t, 1> parts = std::move(parts_[x]);
  parts.append(parts_[y].begin(), parts_[y].end());
  parts_[dag_.merge(x, y)] = std::move(parts);
}

Grouping HorizontalFusion::grouping() const {
  Grouping rows = state_.grouping(), result;
  result.group_of.assign(rows.group_of.size(), UINT32_MAX);
  std::vector<std::pair<uint32_t, uint32_t>> order;  // position, representative
  for (const Group& group : rows.groups) {
    const uint32_t kernel = dag_.find(group.members[0]);
    if (dag_.members(kernel)[0] == group.members[0])
      order.push_back({dag_.position(kernel), kernel});
  }
  std::sort(order.begin(), order.end());
  for (const auto& [position, kernel] : order) {
    Group group{llvm::SmallVector<ValueId, 4>(dag_.members(kernel)), 0, {}};
    for (uint32_t part : parts_[kernel])
      group.parts.push_back(std::move(rows.groups[rows.group_of[part]]));
    if (group.parts.size() == 1) group = Group(std::move(group.parts[0]));
    for (ValueId member : group.members)
      result.group_of[member.index] = static_cast<uint32_t>(result.groups.size());
    result.groups.push_back(std::move(group));
  }
  return result;
}

}  // namespace sinter
