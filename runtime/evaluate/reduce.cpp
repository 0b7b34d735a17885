// Reductions, in exactly the order of ir/reduction_order.h.
#include "runtime/evaluate/reduce.h"

#include <algorithm>
#include <limits>

#include "ir/reduction_order.h"
#include "ir/scalar_math.h"
#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/precise_math.h"

namespace sinter {
namespace {

struct Sum {
  template <typename T>
  static T identity() {
    return 0;
  }
  static float combine(float a, float b) { return math::add(a, b); }
  static int32_t combine(int32_t a, int32_t b) { return math::add(a, b); }
  static double combine(double a, double b) { return precise::add(a, b); }
};
struct Max {
  template <typename T>
  static T identity() {
    using Limits = std::numeric_limits<T>;
    return Limits::has_infinity ? -Limits::infinity() : Limits::lowest();
  }
  static float combine(float a, float b) { return math::maximum(a, b); }
  static int32_t combine(int32_t a, int32_t b) { return math::maximum(a, b); }
  static double combine(double a, double b) { return precise::maximum(a, b); }
};

/// Leaves the results of `runs` runs of neighbouring lanes in the first of `values`.
template <typename Combine, typename T>
void reduce_runs(const T* row, int64_t count, int64_t lanes, int64_t runs, T* values) {
  std::fill(values, values + lanes, Combine::template identity<T>());
  for (int64_t start = 0, lane = 0; start < count; start += kChunk) {
    T value = values[lane];
    for (int64_t i = start; i < std::min(start + kChunk, count); ++i)
      value = Combine::combine(value, row[i]);
    values[lane] = value;
    lane = lane + 1 == lanes ? 0 : lane + 1;
  }
  // All lanes of a butterfly end equal; a lane depends on the first of each pair alone.
  for (int64_t left = lanes; left > runs; left /= 2)
    for (int64_t k = 0; k < left / 2; ++k)
      values[k] = Combine::combine(values[2 * k], values[2 * k + 1]);
}

template <typename Combine, typename T>
T reduce(const T* row, int64_t count, int64_t lanes) {
  T values[kMaxLanes];
  reduce_runs<Combine>(row, count, lanes, 1, values);
  return values[0];
}

/// Rows are the operand's elements with the reduced axes innermost.
template <typename Combine, typename T>
Result<HostView> reduce_rows(const OpCall& call) {
  const HostView& x = call.operands[0];
  const auto& reduced = call.op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  Extents axes;
  int64_t count = 1;
  for (int64_t axis = 0; axis < static_cast<int64_t>(x.dims.size()); ++axis)
    if (!llvm::is_contained(reduced, axis)) axes.push_back(axis);
  for (int64_t axis : reduced) {
    axes.push_back(axis);
    count *= x.dims[axis];
  }
  const int64_t lanes = virtual_lanes(call.operand_type(0).dims, reduced);
  SINTER_LET(value, allocate(call.dims, call.storage));
  HostReader reader(transpose_view(x, axes));
  std::vector<T> scratch(static_cast<size_t>(count));
  const int64_t rows = value.view.volume(), bytes = whole_bytes(call.storage);
  for (int64_t row = 0; row < rows; ++row) {
    const T* elements = reader.next(count, scratch.data());
    const T result = reduce<Combine>(elements, count, lanes);
    store_run(&result, 1, call.storage, value.out + row * bytes);
  }
  return value.view;
}

template <typename Combine>
Result<HostView> reduce_axes(const OpCall& call) {
  if (call.op.type.dtype == DType::i32) return reduce_rows<Combine, int32_t>(call);
  return call.options.precise ? reduce_rows<Combine, double>(call)
                              : reduce_rows<Combine, float>(call);
}

}  // namespace

float reduce_sum(const float* row, int64_t count, int64_t lanes) {
  return reduce<Sum>(row, count, lanes);
}
double reduce_sum(const double* row, int64_t count, int64_t lanes) {
  return reduce<Sum>(row, count, lanes);
}
void sum_runs(const float* row, int64_t count, int64_t lanes, int64_t runs, float* sums) {
  reduce_runs<Sum>(row, count, lanes, runs, sums);
}
void sum_runs(const double* row, int64_t count, int64_t lanes, int64_t runs, double* sums) {
  reduce_runs<Sum>(row, count, lanes, runs, sums);
}
float reduce_max(const float* row, int64_t count, int64_t lanes) {
  return reduce<Max>(row, count, lanes);
}
double reduce_max(const double* row, int64_t count, int64_t lanes) {
  return reduce<Max>(row, count, lanes);
}

Result<HostView> evaluate_reduce_sum(const OpCall& call) { return reduce_axes<Sum>(call); }
Result<HostView> evaluate_reduce_max(const OpCall& call) { return reduce_axes<Max>(call); }

}  // namespace sinter
