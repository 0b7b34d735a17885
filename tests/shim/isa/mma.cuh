// mma.m16n8k16.
#pragma once

#include "kernels/isa/warp_words.cuh"

namespace sinter {

template <typename T>
SINTER_DEVICE void mma_m16n8k16(float (&sums)[4], const T* p, unsigned a0, unsigned a1, unsigned a2,
                                unsigned a3, unsigned b0, unsigned b1) {
  WarpWords& warp = words_of_warp();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const unsigned own[6] = {a0, a1, a2, a3, b0, b1};
  for (int i = 0; i < 6; ++i) warp.words[lane][i] = own[i];
  __syncwarp();
  const auto element = [&](unsigned word, int k) {
    return low_half(p, k % 2 == 0 ? word & 0xffffu : word >> 16);
  };
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4, lower = i / 2, column = 2 * (lane % 4) + i % 2;
    sums[i] = multiply_step(
        sums[i],
        [&](int k) { return element(warp.words[4 * row + k % 8 / 2][lower + k / 8 * 2], k); },
        [&](int k) { return element(warp.words[4 * column + k % 8 / 2][4 + k / 8], k); });
  }
  __syncwarp();
}

}  // namespace sinter
