// tiled_linear in the order of kernels/gemm_tc/order.h; in precise evaluation the same sums in
// float64.
#include <algorithm>

#include "kernels/gemm_tc/order.h"
#include "runtime/evaluate/linear_rows.h"
#include "runtime/evaluate/vector_clones.h"

namespace sinter {
namespace {

/// The sum of an element, of `length` products.
template <typename T>
SINTER_VECTOR_CLONES T element_sum(const T* x, const T* w, int64_t length) {
  T sum = 0;
  for (int64_t begin = 0; begin < length; begin += kTiledLinearStep) {
    double exact = sum;
    const int64_t end = std::min<int64_t>(length, begin + kTiledLinearStep);
    for (int64_t k = begin; k < end; ++k)
      exact += static_cast<double>(x[k]) * static_cast<double>(w[k]);
    sum = static_cast<T>(exact);
  }
  return sum;
}
template float element_sum(const float*, const float*, int64_t);
template double element_sum(const double*, const double*, int64_t);

template <typename T>
void multiply(const OpCall& call, std::byte* out) {
  evaluate_linear_rows<T>(call, element_sum<T>, out);
}

}  // namespace

Result<HostView> evaluate_tiled_linear(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  if (value.view.volume() > 0)
    (call.options.precise ? multiply<double> : multiply<float>)(call, value.out);
  return value.view;
}

}  // namespace sinter
