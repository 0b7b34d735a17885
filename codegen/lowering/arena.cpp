#include "codegen/lowering/arena.h"

#include <algorithm>
#include <set>

#include "ir/fault.h"

namespace sinter {
namespace {

/// The lives of a slot's buffers, which do not meet.
class Lives {
 public:
  bool free(const Buffer& buffer) const {
    const auto later = ends_.lower_bound({buffer.first_step, 0});
    return later == ends_.end() || later->second > buffer.last_step;
  }
  void take(const Buffer& buffer) { ends_.emplace(buffer.last_step, buffer.first_step); }

 private:
  std::set<std::pair<uint32_t, uint32_t>> ends_;  // last and first step
};

}  // namespace

void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols) {
  std::vector<std::pair<int64_t, uint32_t>> order;  // most bytes, buffer
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].place == Buffer::Place::arena)
      order.emplace_back(buffers[i].size_bytes.upper_bound(symbols), i);
  // Large buffers first: later, smaller ones fit into their slots.
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  std::vector<Lives> slots;
  for (const auto& [bytes, i] : order) {
    Buffer& buffer = buffers[i];
    const auto slot = std::find_if(slots.begin(), slots.end(), [&](const Lives& lives) {
      return fault(Fault::overlapping_buffers) || lives.free(buffer);
    });
    buffer.slot = static_cast<uint32_t>(slot - slots.begin());
    if (slot == slots.end()) slots.emplace_back();
    slots[buffer.slot].take(buffer);
  }
}

}  // namespace sinter
