// movmatrix.
#pragma once

#include "kernels/isa/warp_words.cuh"

namespace sinter {

SINTER_DEVICE unsigned movmatrix_trans(unsigned word) {
  WarpWords& warp = words_of_warp();
  const int lane = static_cast<int>(threadIdx.x) % 32, g = lane / 4, q = lane % 4;
  warp.words[lane][0] = word;
  __syncwarp();
  // Element g of row `row`.
  const auto element = [&](int row) {
    return warp.words[4 * row + g / 2][0] >> 16 * (g % 2) & 0xffffu;
  };
  const unsigned result = element(2 * q) | element(2 * q + 1) << 16;
  __syncwarp();
  return result;
}

}  // namespace sinter
