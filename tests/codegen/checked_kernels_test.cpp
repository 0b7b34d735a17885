// Row numbers that name no row, in kernels that are checked: their text, run on the CPU in memory
// of exact size, reads and writes nothing outside and computes what the host evaluator computes.
#include <doctest/doctest.h>

#include "codegen/kernel_trials.h"
#include "ir/row_numbers.h"

namespace sinter::checked_kernels_test {
namespace {

/// Row numbers of a table of `rows` rows: good ones, each at most once, among bad ones.
std::vector<int32_t> numbers(int64_t count, int64_t rows, int64_t turn) {
  std::vector<int32_t> values;
  for (int64_t i = 0; i < count; ++i) {
    const auto own = static_cast<int32_t>(i), first_bad = static_cast<int32_t>(rows);
    const int32_t kinds[] = {own, -1, own, first_bad, INT32_MIN, own, INT32_MAX, own};
    values.push_back(kinds[(i + turn) % 8]);
  }
  return values;
}

/// Ranges of keys that lie before, around, within and after the rows, and empty ones.
void set_ranges(std::vector<HostTensor*>& ranges, int64_t rows) {
  const int64_t first[] = {INT32_MIN, -5, rows / 2, rows, -1, 3, rows - 1, INT32_MAX};
  const int64_t last[] = {INT32_MAX, 7, rows + 9, rows + 3, INT32_MIN, 2, INT32_MAX, INT32_MAX};
  for (int64_t i = 0; i < ranges[0]->volume(); ++i) {
    ranges[0]->data<int32_t>()[i] = static_cast<int32_t>(first[i % 8]);
    ranges[1]->data<int32_t>()[i] = static_cast<int32_t>(last[i % 8]);
  }
}

void set_numbers(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                 std::vector<HostTensor>& inputs) {
  const std::vector<RowNumbers> named = row_numbers(kernel.group);
  const int64_t rows = *named[0].rows.evaluate(symbol_values);
  std::vector<HostTensor*> integers;
  for (HostTensor& input : inputs)
    if (input.dtype == DType::i32) integers.push_back(&input);
  const Op& reader = kernel.group[named[0].op];
  if (reader.kind == OpKind::attention || reader.kind == OpKind::attention_softmax)
    return set_ranges(integers, rows);
  if (reader.kind == OpKind::embedding && integers[0]->dims.size() == 2 && integers.size() == 2)
    std::swap(integers[0], integers[1]);  // a table of integers comes first
  const std::vector<int32_t> values = numbers(integers[0]->volume(), rows, symbol_values[0] % 8);
  std::copy(values.begin(), values.end(), integers[0]->data<int32_t>());
  for (HostTensor* other : llvm::ArrayRef(integers).drop_front())
    if (other->dims.size() == 1) std::fill_n(other->data<int32_t>(), other->volume(), 0);
}

std::vector<DeviceDescription> devices() {
  const DeviceDescription whole = *find_device("sm_90a");
  DeviceDescription looped = whole;
  looped.registers_per_block = 0;
  return {whole, looped};
}

}  // namespace

TEST_CASE("row numbers that name no row read zeros and write nothing") {
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kCheckedGroups)
    for (const DeviceDescription& device : devices())
      trials.add(group, kFloats[turn++ % 3], 72, device);
  run_trials(
      trials,
      {{9, 0, 60, 0, 8}, {37, 0, 20, 0, 5}, {13, 0, 0, 0, 0}, {1, 0, 1, 0, 1}, {0, 0, 5, 0, 0}},
      set_numbers);
}

}  // namespace sinter::checked_kernels_test
