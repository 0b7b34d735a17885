#include "codegen/lowering/arena.h"

#include <algorithm>
#include <bit>

#include "ir/fault.h"

namespace sinter {
namespace {

struct Slot {
  SymExpr size;
  std::vector<uint32_t> buffers;
};

/// A set of numbers, as runs of neighbours.
class NumberSet {
 public:
  void insert(uint32_t number) {
    auto next = after(number);  // the first run that begins behind it
    const bool joins_last = next != runs_.begin() && std::prev(next)->end >= number;
    const bool joins_next = next != runs_.end() && next->begin == number + 1;
    if (joins_last && joins_next) {
      std::prev(next)->end = next->end;
      runs_.erase(next);
    } else if (joins_last) {
      std::prev(next)->end = std::max(std::prev(next)->end, number + 1);
    } else if (joins_next) {
      next->begin = number;
    } else {
      runs_.insert(next, {number, number + 1});
    }
  }

  /// The first number from `number` on that is not in the set.
  uint32_t absent_from(uint32_t number) {
    const auto next = after(number);
    return next == runs_.begin() ? number : std::max(number, std::prev(next)->end);
  }

 private:
  struct Run {
    uint32_t begin, end;
  };
  std::vector<Run>::iterator after(uint32_t number) {
    return std::upper_bound(runs_.begin(), runs_.end(), number,
                            [](uint32_t n, const Run& run) { return n < run.begin; });
  }
  std::vector<Run> runs_;  // ascending, not empty, with gaps between them
};

/// Which slots hold a value at which steps: a segment tree over the steps.
class OccupiedSlots {
 public:
  explicit OccupiedSlots(uint32_t steps)
      : leaves_(std::bit_ceil(steps)), throughout_(2 * leaves_), inside_(2 * leaves_) {}

  /// The slot holds a value from step `first` to step `last`.
  void occupy(uint32_t slot, uint32_t first, uint32_t last) {
    for_each_part(first, last, [&](uint32_t node) {
      throughout_[node].insert(slot);
      for (; node > 0; node /= 2) inside_[node].insert(slot);
    });
  }

  /// The first slot from `slot` on that holds nothing from step `first` to step `last`.
  uint32_t free_from(uint32_t slot, uint32_t first, uint32_t last) {
    // A life that shares a step with these has a part inside one of their parts, or one around it.
    llvm::SmallVector<NumberSet*, 64> occupied;
    for_each_part(first, last, [&](uint32_t node) { occupied.push_back(&inside_[node]); });
    for (uint32_t step : {first, last})
      for (uint32_t node = leaves_ + step; node > 0; node /= 2)
        occupied.push_back(&throughout_[node]);
    for (bool moved = true; moved;) {
      moved = false;
      for (NumberSet* slots : occupied) {
        const uint32_t next = slots->absent_from(slot);
        moved |= next != slot;
        slot = next;
      }
    }
    return slot;
  }

 private:
  /// Visits the parts of a life: the largest nodes whose steps make up first .. last.
  template <typename F>
  void for_each_part(uint32_t first, uint32_t last, F visit) {
    uint32_t begin = leaves_ + first, end = leaves_ + last + 1;
    for (; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) visit(begin++);
      if (end % 2 == 1) visit(--end);
    }
  }

  uint32_t leaves_;
  // By node, 1 the root: the slots of which it is a part; those with a part at it or below it.
  std::vector<NumberSet> throughout_, inside_;
};

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
  uint32_t steps = 0;
  for (uint32_t i : order) steps = std::max(steps, buffers[i].last_step + 1);
  OccupiedSlots occupied(steps);
  std::vector<Slot> slots;
  for (uint32_t i : order) {
    const SymExpr size = aligned(buffers[i].size_bytes);
    const auto free_from = [&](uint32_t slot) {
      if (fault(Fault::overlapping_buffers)) return slot;
      return occupied.free_from(slot, buffers[i].first_step, buffers[i].last_step);
    };
    const auto fits = [&](const Slot& slot) {
      return slot.size.covers(size) || size.covers(slot.size);
    };
    uint32_t slot = free_from(0);
    while (slot < slots.size() && !fits(slots[slot])) slot = free_from(slot + 1);
    if (slot == slots.size()) slots.push_back({size, {}});
    if (!slots[slot].size.covers(size)) slots[slot].size = size;
    slots[slot].buffers.push_back(i);
    occupied.occupy(slot, buffers[i].first_step, buffers[i].last_step);
  }
  SymExpr offset;
  for (const Slot& slot : slots) {
    for (uint32_t i : slot.buffers) buffers[i].offset_bytes = offset;
    offset += slot.size;
  }
  return offset;
}

}  // namespace sinter
