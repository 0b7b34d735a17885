// top_k: by keys that order floats (ir/scalar_math.h), equal ones by position.
#include <algorithm>
#include <numeric>

#include "ir/scalar_math.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

/// Grows with x, of either precision; NaN is the largest.
math::u32 key_of(float x) { return math::order_key(x); }
double key_of(double x) { return std::isnan(x) ? HUGE_VAL : x; }

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
                     [&](int32_t a, int32_t b) { return key_of(x[a]) > key_of(x[b]); });
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
