#include "codegen/lowering/arena.h"

#include <algorithm>
#include <numeric>

#include "ir/fault.h"

namespace sinter {
namespace {

struct Slot {
  SymExpr size;
  std::vector<uint32_t> buffers;
};

bool lives_meet(const Buffer& a, const Buffer& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

/// Every coefficient rounded up, so that all values of the expression are aligned.
SymExpr aligned(const SymExpr& size) {
  SymExpr result;
  for (const SymExpr::Term& term : size.terms()) {
    SymExpr product((term.coefficient + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment);
    for (SymbolId symbol : term.symbols) product = product * SymExpr(Dim(symbol));
    result += product;
  }
  return result;
}

}  // namespace

SymExpr plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols) {
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].place == Buffer::Place::arena) order.push_back(i);
  // Large buffers first: later, smaller ones fit into their slots.
  std::stable_sort(order.begin(), order.end(), [&](uint32_t x, uint32_t y) {
    return buffers[x].size_bytes.upper_bound(symbols) > buffers[y].size_bytes.upper_bound(symbols);
  });
  std::vector<Slot> slots;
  for (uint32_t i : order) {
    const SymExpr size = aligned(buffers[i].size_bytes);
    const auto free = [&](const Slot& slot) {
      const bool covers = slot.size.covers(size) || size.covers(slot.size);
      return covers &&
             (fault(Fault::overlapping_buffers) || llvm::none_of(slot.buffers, [&](uint32_t j) {
                return lives_meet(buffers[i], buffers[j]);
              }));
    };
    auto slot = std::find_if(slots.begin(), slots.end(), free);
    if (slot == slots.end()) slot = slots.insert(slots.end(), Slot{size, {}});
    if (!slot->size.covers(size)) slot->size = size;
    slot->buffers.push_back(i);
  }
  SymExpr offset;
  for (const Slot& slot : slots) {
    for (uint32_t i : slot.buffers) buffers[i].offset_bytes = offset;
    offset += slot.size;
  }
  return offset;
}

}  // namespace sinter
