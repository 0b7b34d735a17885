// scatter_add: a row's updates in ascending order, from +0; in precise evaluation in float64.
#include "ir/row_numbers.h"
#include "ir/scalar_math.h"
#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

template <typename Sum>
Result<HostView> add_rows(const OpCall& call) {
  std::vector<int32_t> numbers;
  const int32_t* index = dense_elements(call.operands[0], numbers);
  const int64_t count = call.operands[1].dims[0], rows = call.dims[0];
  const auto width = static_cast<size_t>(call.dims[1]);
  SINTER_LET(value, allocate(call.dims, call.storage));
  std::vector<Sum> sums(static_cast<size_t>(rows) * width), scratch(width);
  HostReader reader(call.operands[1]);
  for (int64_t n = 0; n < count; ++n) {
    const Sum* update = reader.next(call.dims[1], scratch.data());
    if (index[n] < 0 || index[n] >= rows) {
      if (is_checked(call.op)) continue;
      return call.error(
          fmt::format("index {} at position {} is not one of the {} rows", index[n], n, rows),
          "check the inputs");
    }
    Sum* row = sums.data() + static_cast<size_t>(index[n]) * width;
    for (size_t d = 0; d < width; ++d) row[d] += update[d];
  }
  store_run(sums.data(), value.view.volume(), call.storage, value.out);
  return value.view;
}

}  // namespace

Result<HostView> evaluate_scatter_add(const OpCall& call) {
  return call.options.precise ? add_rows<double>(call) : add_rows<float>(call);
}

}  // namespace sinter
