// Kernels of closed ops compute what the host evaluator computes, bit for bit.
#include <doctest/doctest.h>

#include <cmath>

#include "codegen/attention_trials.h"
#include "codegen/kernel_trials.h"
#include "codegen/offset_groups.h"
#include "runtime/eval_case.h"

namespace sinter::closed_kernels_test {
namespace {

/// The inputs that decide what a closed op does: ranges of keys of every kind, ways to choose.
class ClosedOpInputs {
 public:
  ClosedOpInputs(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                 std::vector<HostTensor>& inputs)
      : group_(kernel.group),
        op_(group_[group_.outputs[0]]),
        values_(symbol_values),
        inputs_(inputs) {}

  void vary() {
    if (order_of(op_) == Order::decode_attention) vary_ranges();
    if (op_.kind == OpKind::sample) vary_choices();
  }

  /// Rows in which the largest element stands in many places or is none: of one number, NaN, zeros
  /// of both signs, -infinity but for one, NaN before -infinity, +infinity first and last; one NaN
  /// first, in the middle, last; -infinity alone.
  void vary_logits() {
    HostTensor& logits = operand(0);
    const int64_t width = logits.dims[1];
    std::vector<double> values;
    for (int64_t i = 0; i < logits.volume(); ++i) {
      const int64_t row = i / width, column = i % width;
      const double kinds[] = {2.5,
                              NAN,
                              column % 2 == 0 ? -0.0 : 0.0,
                              column == width / 2 ? -3 : -INFINITY,
                              column < width / 3 ? NAN : -INFINITY,
                              column == 0 || column == width - 1 ? INFINITY : 1,
                              column == 0 ? NAN : -static_cast<double>(column % 7),
                              column == width / 2 ? NAN : -static_cast<double>(column % 7),
                              column == width - 1 ? NAN : -static_cast<double>(column % 7),
                              -INFINITY,
                              -static_cast<double>(column % 7)};
      values.push_back(kinds[row / 9 % 11]);  // each meets all choices
    }
    logits = tensor(logits.dtype, logits.dims, values);
  }

 private:
  HostTensor& operand(size_t i) {
    const ValueId root = root_of(group_, op_.operands[i]);
    const auto at = llvm::find(group_.inputs, root);
    return inputs_[static_cast<size_t>(at - group_.inputs.begin())];
  }

  template <typename T, typename Value>
  void set(size_t index, const Value& value) {
    if (!input_of(group_, op_.operands[index])) return;  // the group computes it
    HostTensor& tensor = operand(index);
    for (int64_t i = 0; i < tensor.volume(); ++i) tensor.data<T>()[i] = static_cast<T>(value(i));
  }

  void vary_ranges() {
    const Dim dim = attention_key_rows(group_, op_);
    const int64_t rows = dim.is_constant() ? dim.constant() : values_[dim.symbol().index];
    // All keys, the first, three in the middle, the last, none, all but two, the second half, none.
    const int64_t first[] = {0, 0, rows / 3, rows - 1, 5, 1, rows / 2, 0};
    const int64_t last[] = {rows - 1, 0, rows / 3 + 2, rows - 1, 4, rows - 2, rows - 1, -1};
    set<int32_t>(3, [&](int64_t i) { return first[i % 8]; });
    if (op_.operands[4] != op_.operands[3]) set<int32_t>(4, [&](int64_t i) { return last[i % 8]; });
    if (clamps_rows(op_)) {  // the same rows, and others that are not there
      set<int32_t>(3, [&](int64_t i) { return first[i % 8] - (i % 8 < 2 ? 7 : 0); });
      set<int32_t>(4, [&](int64_t i) {
        return i % 8 == 0 ? INT32_MAX : last[i % 8] + (i % 8 == 3 ? 9 : 0);
      });
    }
    std::mt19937 random(7);
    vary_mask(group_, op_, inputs_, random);
  }

  void vary_choices() {
    const int64_t width = group_[op_.operands[0]].type.dims[1].constant();
    const double temperatures[] = {1, 0, 0.5, 2, 1e-3, INFINITY, -1, 0.8, 1e-42};
    const int64_t top_ks[] = {0, 1, 5, width - 1, width, 50, -2, 2};
    const double top_ps[] = {1, 0.9, 0, 0.5, 0.1, 2, 0.99};
    set<float>(1, [&](int64_t i) { return temperatures[i % 9]; });
    set<int32_t>(4, [&](int64_t i) { return i * 12345 - 7; });
    set<int32_t>(2, [&](int64_t i) { return top_ks[i % 8]; });
    set<float>(3, [&](int64_t i) { return top_ps[i % 7]; });
    set<int32_t>(5, [&](int64_t i) { return i * i; });
  }

  const Graph& group_;
  const Op& op_;
  llvm::ArrayRef<int64_t> values_;
  std::vector<HostTensor>& inputs_;
};

void vary(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
          std::vector<HostTensor>& inputs) {
  ClosedOpInputs(kernel, symbol_values, inputs).vary();
}

}  // namespace

TEST_CASE("attention of few tokens and the choice of tokens, read through views") {
  Trials trials;
  for (const GroupText& group : kClosedGroups)
    for (DType dtype : kFloats) trials.add(group, dtype, 0, *find_device("sm_90a"));
  run_trials(trials, {{8, 0, 150, 0}, {5, 0, 5, 0}, {0, 0, 0, 0}}, vary);
}

TEST_CASE("attention of so many tokens that a block takes all heads of a key head") {
  DeviceDescription small = *find_device("sm_90a");
  small.multiprocessors = 1;
  Trials trials;
  for (const GroupText& group : kClosedGroups)
    if (group.name == std::string_view("attention_of_many_keys_in_a_window"))
      for (DType dtype : kFloats) trials.add(group, dtype, 0, small);
  REQUIRE(trials.kernels.size() == 3);
  for (const Kernel& kernel : trials.kernels)
    REQUIRE(kernel.source.find("attend_wide") != std::string::npos);
  run_trials(trials, {{8, 0, 0, 0}, {2, 0, 0, 0}}, vary);
}

TEST_CASE("tiles of masks, of which few show a key") {
  Trials trials;
  trials.special_values = false;
  size_t turn = 0;
  for (const GroupText& group : kMaskTilesGroups)
    trials.add(group, kFloats[turn++ % 3], 0, *find_device("sm_90a"));
  std::mt19937 random(3);
  const auto hide_most = [&](const Kernel&, llvm::ArrayRef<int64_t>,
                             std::vector<HostTensor>& inputs) {
    HostTensor& mask = inputs[0];
    std::vector<double> values(static_cast<size_t>(mask.volume()),
                               mask.dtype == DType::i1 ? 0 : -INFINITY);
    constexpr double kShown[] = {0, NAN, -65504};
    for (size_t shown = 0; shown < values.size() / 9000 + 1 && !values.empty(); ++shown)
      values[random() % values.size()] = mask.dtype == DType::i1 ? 1 : kShown[shown % 3];
    mask = tensor(mask.dtype, mask.dims, values);
  };
  run_trials(trials,
             {{300, 0, 200, 136, 2},
              {129, 0, 128, 64, 1},
              {1, 0, 1, 8, 3},
              {0, 0, 5, 0, 2},
              {40, 0, 0, 0, 1}},
             hide_most);
}

TEST_CASE("the choice of tokens from vocabularies of one to many for each thread") {
  Trials trials;
  for (DType dtype : kFloats) trials.add(kSampleGroup, dtype, 1025, *find_device("sm_90a"));
  size_t turn = 0;
  for (int64_t width : {1, 100, 5000, 33007})
    trials.add(kSampleGroup, kFloats[turn++ % 3], width, *find_device("sm_90a"));
  run_trials(trials, {{20, 0, 0, 0}}, vary);
}

TEST_CASE("the choice of tokens from rows of ties and of no numbers") {
  Trials trials;
  for (int64_t width : {3, 8, 1001})
    for (DType dtype : kFloats) trials.add(kSampleGroup, dtype, width, *find_device("sm_90a"));
  // 11 kinds of rows, 9 temperatures
  run_trials(trials, {{99, 0, 0, 0}},
             [](const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                std::vector<HostTensor>& inputs) {
               ClosedOpInputs varied(kernel, symbol_values, inputs);
               varied.vary();
               varied.vary_logits();
             });
}

TEST_CASE("closed ops whose operands begin at the second element of a tensor") {
  Trials trials;
  size_t turn = 0;
  for (int64_t width : kOffsetWidths)
    for (const OffsetGroup& group : offset_closed_groups(width))
      trials.add(group.view(), kFloats[turn++ % 3], width, *find_device("sm_90a"));
  run_trials(trials, {{0, 0, 0, 0}}, vary);
}

}  // namespace sinter::closed_kernels_test
