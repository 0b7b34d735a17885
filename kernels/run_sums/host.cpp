// run_sums on the host: a column's rows in the order of ir/column_runs.h.
#include "ir/column_runs.h"
#include "runtime/evaluate/ops.h"
#include "runtime/evaluate/reduce.h"

namespace sinter {
namespace {

/// The operand with its columns outermost: each is then a row.
HostView columns_first(const HostView& x) {
  Extents axes{static_cast<int64_t>(x.dims.size()) - 1};
  for (int64_t axis = 0; axis + 1 < static_cast<int64_t>(x.dims.size()); ++axis)
    axes.push_back(axis);
  return transpose_view(x, axes);
}

template <typename T>
Result<HostView> sum_columns(const OpCall& call) {
  const int64_t runs = call.dims[0], operands = call.dims[1], width = call.dims[2];
  SINTER_LET(value, allocate(call.dims, call.storage));
  const int64_t bytes = whole_bytes(call.storage);
  T sums[kMaxLanes];
  std::vector<T> scratch;
  for (int64_t k = 0; k < operands; ++k) {
    const HostView& x = call.operands[static_cast<size_t>(k)];
    const int64_t rows = x.volume() / width, lanes = virtual_lanes(rows);
    scratch.resize(static_cast<size_t>(rows));
    HostReader reader(columns_first(x));
    for (int64_t column = 0; column < width; ++column) {
      sum_runs(reader.next(rows, scratch.data()), rows, lanes, runs, sums);
      for (int64_t run = 0; run < runs; ++run)
        store_run(&sums[run], 1, call.storage,
                  value.out + ((run * operands + k) * width + column) * bytes);
    }
  }
  return value.view;
}

}  // namespace

Result<HostView> evaluate_run_sums(const OpCall& call) {
  return call.options.precise ? sum_columns<double>(call) : sum_columns<float>(call);
}

}  // namespace sinter
