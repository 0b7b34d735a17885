// sorted_positions, sorted_places and run_ends.
#include <algorithm>
#include <numeric>

#include "runtime/evaluate/ops.h"

namespace sinter {
namespace {

struct Numbers {
  std::vector<int32_t> scratch;
  const int32_t* values;
  int64_t count;
  int64_t runs;

  explicit Numbers(const OpCall& call)
      : values(dense_elements(call.operands[0], scratch)),
        count(call.operands[0].dims[0] * call.operands[0].dims[1]),
        runs(call.op.attrs.get<int64_t>(AttrName::count)) {}
  /// The run of a number; `runs`: the number has no run.
  int64_t run(int64_t position) const {
    const int32_t number = values[position];
    return number < 0 || number >= runs ? runs : number;
  }
  std::vector<int32_t> positions() const {
    std::vector<int32_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int32_t a, int32_t b) { return run(a) < run(b); });
    return order;
  }
};

Result<HostView> stored(const OpCall& call, const std::vector<int32_t>& values) {
  SINTER_LET(value, allocate(call.dims, call.storage));
  store_run(values.data(), static_cast<int64_t>(values.size()), call.storage, value.out);
  return value.view;
}

}  // namespace

Result<HostView> evaluate_sorted_positions(const OpCall& call) {
  return stored(call, Numbers(call).positions());
}

Result<HostView> evaluate_sorted_places(const OpCall& call) {
  const std::vector<int32_t> positions = Numbers(call).positions();
  std::vector<int32_t> places(positions.size());
  for (size_t place = 0; place < positions.size(); ++place)
    places[static_cast<size_t>(positions[place])] = static_cast<int32_t>(place);
  return stored(call, places);
}

Result<HostView> evaluate_run_ends(const OpCall& call) {
  const Numbers numbers(call);
  std::vector<int32_t> ends(static_cast<size_t>(numbers.runs) + 1);
  for (int64_t position = 0; position < numbers.count; ++position)
    ++ends[static_cast<size_t>(numbers.run(position))];
  ends.pop_back();
  std::partial_sum(ends.begin(), ends.end(), ends.begin());
  return stored(call, ends);
}

}  // namespace sinter
