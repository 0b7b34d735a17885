// The results of ops with the operands of `linear`: x [..., K], w [M, K], bias [M]?. They differ in
// the order in which an element is summed.
#pragma once

#include <vector>

#include "runtime/evaluate/ops.h"

namespace sinter {

/// sum(row of x, row of w, K) gives an element in T; the bias is added to it. K is 1 or more.
template <typename T, typename Sum>
void evaluate_linear_rows(const OpCall& call, const Sum& sum, std::byte* out) {
  std::vector<T> x_scratch, w_scratch, bias_scratch;
  const T* x = dense_elements(call.operands[0], x_scratch);
  const T* w = dense_elements(call.operands[1], w_scratch);
  const T* bias =
      call.operands.size() == 3 ? dense_elements(call.operands[2], bias_scratch) : nullptr;
  const int64_t columns = call.operands[1].dims[0], length = call.operands[1].dims[1];
  const int64_t rows = call.operands[0].volume() / length;
  std::vector<T> sums(static_cast<size_t>(columns));
  for (int64_t n = 0; n < rows; ++n) {
    for (int64_t m = 0; m < columns; ++m) {
      const T element = sum(x + n * length, w + m * length, length);
      sums[m] = bias != nullptr ? element + bias[m] : element;
    }
    store_run(sums.data(), columns, call.storage, out + n * columns * whole_bytes(call.storage));
  }
}

}  // namespace sinter
