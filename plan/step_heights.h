// The greatest height at each step, of things that stand on one another for some steps each.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace sinter {

/// A segment tree over the steps: each operation takes a time that grows with the logarithm of
/// their number.
class StepHeights {
 public:
  explicit StepHeights(uint32_t steps)
      : leaves_(std::bit_ceil(std::max(steps, 1u))),
        throughout_(2 * leaves_),
        inside_(2 * leaves_) {}

  /// The greatest height from step `first` to step `last`.
  int64_t highest(uint32_t first, uint32_t last) const {
    int64_t result = 0;
    for_each_part(first, last, [&](uint32_t node) { result = std::max(result, inside_[node]); });
    for (uint32_t step : {first, last})
      for (uint32_t node = leaves_ + step; node > 0; node /= 2)
        result = std::max(result, throughout_[node]);
    return result;
  }

  /// Heights of these steps that were less are `height` now.
  void raise(uint32_t first, uint32_t last, int64_t height) {
    for_each_part(first, last, [&](uint32_t node) {
      throughout_[node] = std::max(throughout_[node], height);
      for (; node > 0; node /= 2) inside_[node] = std::max(inside_[node], height);
    });
  }

 private:
  /// Visits the largest nodes whose steps make up first .. last.
  void for_each_part(uint32_t first, uint32_t last,
                     llvm::function_ref<void(uint32_t)> visit) const {
    uint32_t begin = leaves_ + first, end = leaves_ + last + 1;
    for (; begin < end; begin /= 2, end /= 2) {
      if (begin % 2 == 1) visit(begin++);
      if (end % 2 == 1) visit(--end);
    }
  }

  uint32_t leaves_;
  // By node, 1 the root: the height of all its steps; the greatest of a part at it or below it.
  std::vector<int64_t> throughout_, inside_;
};

}  // namespace sinter
