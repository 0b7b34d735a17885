// The orders of operations of tiled_linear, tiled_codes, grouped_linear and grouped_outer, the same
// text on host and device.
//
// tiled_linear: an element of the result is one float32 sum over K, a step of 16 elements after the
// other, ascending; K is filled up with zeros to a whole number of steps. The bias is added to the
// sum, which is rounded once to the type of the result. The order in which tensor cores add the
// products of a step is their own; the host, and the CPU of the tests, add them in float64,
// elements ascending, and round once a step. Neither the tile that computes an element nor the
// other rows and columns change its bits. grouped_linear has this order with the matrix of the
// row's run, grouped_outer with the run's rows in the place of K, from the run's first one on.
//
// tiled_codes: the matrix is packed (ir/packed_codes.h), and w a code less its zero, exactly where
// the operand's type has it: up to 256 in bf16 and 2048 in f16, which no zero among the codes' own
// values exceeds; beyond it is rounded. A run is the 128 neighbouring columns of 16 lanes in a
// round. A step's runs of the first 16 lanes come first, by round, then the runs of the other
// lanes: with 4 rounds the columns from 0, 256, 512, 768, 128, 384, 640 and 896 on. A group of a
// run, ascending, has the sum s1 of its products in steps of 16 as above, from +0; then sum =
// fma(scale, s1, sum), from +0. With minima it has the sum s2 of the elements of x, added as s1 is;
// then sum = fma(-minimum, s2, sum). Where a row has one scale, s1 and s2 are one sum each of all
// its runs. Bias and rounding as above.
#pragma once

#include "ir/packed_codes.h"
#include "ir/scalar_math.h"

namespace sinter {

constexpr int kTiledLinearStep = 16;  // elements

// Tensor maps take rows of a multiple of 16 bytes.
constexpr int kTiledLinearMultiple = 8;  // elements of a row
SINTER_DEVICE constexpr bool is_tiled_linear_length(long long length) {
  return length > 0 && length % kTiledLinearMultiple == 0;
}

}  // namespace sinter
