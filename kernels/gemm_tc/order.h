// The order of operations of tiled_linear, the same text on host and device.
//
// An element of the result is one float32 sum over K, a step of 16 elements after the other,
// ascending; K is filled up with zeros to a whole number of steps. The bias is added to the sum,
// which is rounded once to the type of the result. The order in which tensor cores add the products
// of a step is their own; the host, and the CPU of the tests, add them in float64, elements
// ascending, and round once a step. Neither the tile that computes an element nor the other rows
// and columns change its bits.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kTiledLinearStep = 16;  // elements

// Tensor maps take rows of a multiple of 16 bytes.
constexpr int kTiledLinearMultiple = 8;  // elements of a row
SINTER_DEVICE constexpr bool is_tiled_linear_length(long long length) {
  return length > 0 && length % kTiledLinearMultiple == 0;
}

}  // namespace sinter
