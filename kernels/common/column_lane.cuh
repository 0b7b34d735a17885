// A virtual lane of sums down columns (ir/reduction_order.h), in the registers of a thread.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/common/vector.cuh"

namespace sinter {

// One lane of 8 columns.
template <typename Op>
struct ColumnLane {
  using T = typename Op::T;
  T value[8];

  SINTER_DEVICE ColumnLane() {
#pragma unroll
    for (int e = 0; e < 8; ++e) value[e] = Op::identity();
  }
  SINTER_DEVICE void take(int e, T x) { value[e] = Op::combine(value[e], x); }
  // Columns p and p + 1, of which the chunk has the first `valid`.
  template <typename Element>
  SINTER_DEVICE void take_pair(int p, const Packed<Element>& x, int valid = 8) {
    if (p < valid) take(p, x[p]);
    if (p + 1 < valid) take(p + 1, x[p + 1]);
  }
};

}  // namespace sinter
