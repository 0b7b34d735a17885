#include "codegen/lowering/arena.h"

#include <llvm/ADT/SmallVector.h>

#include <algorithm>
#include <bit>

#include "ir/fault.h"

namespace sinter {
namespace {

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

}  // namespace

void plan_arena(std::vector<Buffer>& buffers, llvm::ArrayRef<Symbol> symbols) {
  std::vector<std::pair<int64_t, uint32_t>> order;  // most bytes, buffer
  uint32_t steps = 0;
  for (uint32_t i = 0; i < buffers.size(); ++i) {
    if (buffers[i].place != Buffer::Place::arena) continue;
    order.emplace_back(buffers[i].size_bytes.upper_bound(symbols), i);
    steps = std::max(steps, buffers[i].last_step + 1);
  }
  // Large buffers first: later, smaller ones fit into their slots.
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  OccupiedSlots occupied(steps);
  for (const auto& [bytes, i] : order) {
    Buffer& buffer = buffers[i];
    buffer.slot = fault(Fault::overlapping_buffers)
                      ? 0
                      : occupied.free_from(0, buffer.first_step, buffer.last_step);
    occupied.occupy(buffer.slot, buffer.first_step, buffer.last_step);
  }
}

}  // namespace sinter
