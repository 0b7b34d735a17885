#include "codegen/lowering/arena.h"

#include <algorithm>
#include <queue>
#include <set>

#include "ir/fault.h"

namespace sinter {

void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols) {
  struct Wanted {
    uint32_t buffer;
    int64_t bytes;  // for the largest values of the symbols
  };
  std::vector<Wanted> wanted;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].place == Buffer::Place::arena)
      wanted.push_back({i, buffers[i].size_bytes.upper_bound(symbols)});
  // In the order in which they are written; of a step's results the largest first.
  std::stable_sort(wanted.begin(), wanted.end(), [&](const Wanted& x, const Wanted& y) {
    const uint32_t a = buffers[x.buffer].first_step, b = buffers[y.buffer].first_step;
    return a != b ? a < b : x.bytes > y.bytes;
  });

  std::vector<int64_t> bytes;                   // of each slot
  std::set<std::pair<int64_t, uint32_t>> free;  // bytes and number of the slots that hold nothing
  using End = std::pair<uint32_t, uint32_t>;    // the last step of what a slot holds, and the slot
  std::priority_queue<End, std::vector<End>, std::greater<>> taken;
  for (const Wanted& next : wanted) {
    Buffer& buffer = buffers[next.buffer];
    while (!taken.empty() &&
           (taken.top().first < buffer.first_step || fault(Fault::overlapping_buffers))) {
      free.emplace(bytes[taken.top().second], taken.top().second);
      taken.pop();
    }
    // The smallest slot that is large enough, else the largest, which grows.
    auto slot = free.lower_bound({next.bytes, 0});
    if (slot == free.end() && !free.empty()) --slot;
    if (slot == free.end()) {
      slot = free.emplace(next.bytes, static_cast<uint32_t>(bytes.size())).first;
      bytes.push_back(next.bytes);
    }
    buffer.slot = slot->second;
    free.erase(slot);
    bytes[buffer.slot] = std::max(bytes[buffer.slot], next.bytes);
    taken.emplace(buffer.last_step, buffer.slot);
  }
}

}  // namespace sinter
