// top_k in the order of kernels/top_k/order.h.
#include <algorithm>
#include <numeric>

#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// NaN is larger than every number, and no NaN larger than another.
template <typename T>
bool is_larger(T x, T y) {
  return x != x ? y == y : x > y;
}

template <typename T>
Result<HostView> largest(const OpCall& call) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t rows = call.dims[0], count = call.dims[1], columns = call.operands[0].dims[1];
  std::vector<T> scratch(static_cast<size_t>(columns));
  std::vector<int32_t> order(static_cast<size_t>(columns)), chosen;
  HostReader reader(call.operands[0]);
  for (int64_t row = 0; row < rows; ++row) {
    const T* x = reader.next(columns, scratch.data());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return is_larger(x[a], x[b]); });
    chosen.insert(chosen.end(), order.begin(), order.begin() + count);
  }
  store_run(chosen.data(), rows * count, call.storage, value.out);
  return value.view;
}

}  // namespace

Result<HostView> evaluate_top_k(const OpCall& call) {
  return call.options.precise ? largest<double>(call) : largest<float>(call);
}

}  // namespace sinter
