// Fragments and addresses that the lanes of a warp exchange in instructions of the whole warp, and
// the sum of a step of tensor cores.
#pragma once

#include "kernels/common/vector.cuh"

namespace sinter {

struct WarpWords {
  unsigned words[32][6];           // fragments
  const unsigned short* rows[32];  // row addresses
};
SINTER_DEVICE WarpWords& words_of_warp() {
  static WarpWords all[32];
  return all[threadIdx.x / 32];
}

// sum + the products of 16 elements: added in float64, elements ascending, and rounded once. (The
// hardware's order is its own.)
template <typename ElementA, typename ElementB>
float multiply_step(float sum, ElementA a, ElementB b) {
  double exact = sum;
  for (int k = 0; k < 16; ++k) exact += static_cast<double>(a(k)) * static_cast<double>(b(k));
  return static_cast<float>(exact);
}

}  // namespace sinter
