// Arithmetic of integers that several rooms need.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include <cstdint>

namespace sinter {

/// a / b, rounded up; neither is negative.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// The elements of an array of these extents, none negative; INT64_MAX where they are more.
inline int64_t elements_of(llvm::ArrayRef<int64_t> extents) {
  int64_t elements = 1;
  for (int64_t extent : extents)
    if (__builtin_mul_overflow(elements, extent, &elements)) return INT64_MAX;
  return elements;
}

}  // namespace sinter
