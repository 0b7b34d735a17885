// movmatrix.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE unsigned movmatrix_trans(unsigned word) {
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, q = lane % 4;
  // Element g of row `row`.
  const auto element = [&](int row) {
    return __shfl_sync(0xffffffffu, word, 4 * row + g / 2) >> 16 * (g % 2) & 0xffffu;
  };
  const unsigned low = element(2 * q);
  return low | element(2 * q + 1) << 16;
}

}  // namespace sinter
