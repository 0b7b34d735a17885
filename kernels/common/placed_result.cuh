// Where the elements of a result are stored.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

// One after the other.
template <typename T>
struct DenseResult {
  static constexpr bool kChunks = true;
  T* memory;

  SINTER_DEVICE T* operator()(long long element) const { return memory + element; }
};

// A part of a larger value: `run` neighbouring elements, the next ones `stride` elements after
// them. kChunks: 8 elements from a multiple of 8 on are neighbours, at a multiple of 8 of the
// value.
template <typename T, long long run, long long stride, bool chunks>
struct PlacedResult {
  static constexpr bool kChunks = chunks;
  T* memory;  // of the part's first element

  SINTER_DEVICE T* operator()(long long element) const {
    return memory + element / run * stride + element % run;
  }
};

}  // namespace sinter
