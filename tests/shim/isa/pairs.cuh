// Arithmetic on pairs of 16-bit floats.
#pragma once

#include "ir/packed_codes.h"
#include "kernels/common/vector.cuh"

namespace sinter {

// Rounded to float32 first: the results of the kernels are exact there.
template <typename T>
SINTER_DEVICE unsigned fma_rn(const T* p, unsigned a, unsigned b, unsigned c) {
  float half[2];
  for (int k = 0; k < 2; ++k) {
    const auto value = [&](unsigned word) { return low_half(p, word >> 16 * k & 0xffffu); };
    half[k] = math::fma(value(a), value(b), value(c));
  }
  return pack(p, half[0], half[1]);
}

SINTER_DEVICE unsigned cvt_rn_f16x2_e4m3x2(unsigned word) {
  return pack(static_cast<const f16*>(nullptr), codes::e4m3::value(word, 0),
              codes::e4m3::value(word, 1));
}

}  // namespace sinter
