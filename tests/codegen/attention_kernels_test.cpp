// Kernels around a tiled_attention compute what the host evaluator computes, bit for bit: on the
// CPU tensor cores add in the order that kernels/attention/order.h states for it. Products of warps
// and of warpgroups, swizzled tiles, barriers and the roles of warps are played.
#include <doctest/doctest.h>

#include <random>

#include "codegen/kernel_trials.h"
#include "ir/scalar_math.h"
#include "kernels/attention/order.h"
#include "runtime/evaluate/evaluate.h"

namespace sinter {
namespace {

constexpr DType kTypes[] = {DType::f16, DType::bf16};

/// How the tokens of a call see keys.
enum class Pattern : uint8_t { causal, all, one, packed, holes, none };
constexpr Pattern kPatterns[] = {Pattern::causal, Pattern::all,   Pattern::one,
                                 Pattern::packed, Pattern::holes, Pattern::none};

struct Ranges {
  std::vector<int32_t> first, last;
};

Ranges ranges_of(Pattern pattern, int64_t tokens, int64_t rows, std::mt19937& random) {
  Ranges ranges;
  int64_t begin = 0, end = 0;  // of the sequence of packed texts
  for (int64_t n = 0; n < tokens; ++n) {
    const auto row = [&] { return static_cast<int64_t>(random() % static_cast<uint64_t>(rows)); };
    int64_t first = 0, last = rows - 1;
    switch (pattern) {
      case Pattern::causal:  // behind a filled cache
        last = std::clamp<int64_t>(rows - tokens + n, 0, rows - 1);
        break;
      case Pattern::all:
        break;
      case Pattern::one:
        first = last = row();
        break;
      case Pattern::packed:  // texts of one token and more, with gaps between their slots
        if (n >= end) {
          begin = std::min(n + static_cast<int64_t>(random() % 3), rows - 1);
          end = n + 1 + static_cast<int64_t>(random() % 60);
        }
        first = begin;
        last = std::clamp(n, begin, rows - 1);
        break;
      case Pattern::holes:
        first = row();
        last = row();
        break;
      case Pattern::none:
        first = rows - 1;
        last = n % 5 == 0 ? rows - 1 : rows - 2;
        break;
    }
    ranges.first.push_back(static_cast<int32_t>(first));
    ranges.last.push_back(static_cast<int32_t>(last));
  }
  return ranges;
}

const Op& attention_of(const Graph& group) {
  return *llvm::find_if(group.ops(),
                        [](const Op& op) { return op.kind == OpKind::tiled_attention; });
}

HostTensor& input_of(const Graph& group, ValueId id, std::vector<HostTensor>& inputs) {
  return inputs[static_cast<size_t>(llvm::find(group.inputs, root_of(group, id)) -
                                    group.inputs.begin())];
}

/// Sets the ranges of keys, another pattern in each call.
struct Vary {
  std::mt19937 random{7};
  size_t turn = 0;

  void operator()(const Kernel& kernel, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
    const Graph& group = kernel.group;
    const Op& op = attention_of(group);
    HostTensor& first = input_of(group, op.operands[3], inputs);
    HostTensor& last = input_of(group, op.operands[4], inputs);
    const int64_t rows = input_of(group, op.operands[1], inputs).dims[0];
    if (rows == 0) return;
    const Ranges ranges =
        ranges_of(kPatterns[turn++ % std::size(kPatterns)], first.volume(), rows, random);
    std::copy(ranges.last.begin(), ranges.last.end(), last.data<int32_t>());
    if (&first != &last) std::copy(ranges.first.begin(), ranges.first.end(), first.data<int32_t>());
    if (op.attrs.has(AttrName::checked)) {
      for (int64_t n = 0; n < first.volume(); n += 3) {
        first.data<int32_t>()[n] = n % 2 == 0 ? INT32_MIN : -7;
        last.data<int32_t>()[n] = n % 2 == 0 ? static_cast<int32_t>(rows) + 9 : INT32_MAX;
      }
    }
  }
};

/// The number of tokens and the rows of the caches: none, few, whole tiles, broken ones.
const std::vector<std::vector<int64_t>> kSizes = {
    {1, 0, 1, 0, 0}, {70, 0, 200, 0, 0}, {129, 0, 130, 0, 0}, {0, 0, 5, 0, 0}};

void run(const Capabilities& played, const char* arch, llvm::ArrayRef<int64_t> widths) {
  Trials trials;
  trials.played = played;
  trials.special_values = false;
  for (size_t i = 0; i < kAttentionGroups.size(); ++i)
    trials.add(kAttentionGroups[i], kTypes[i % 2], 64, *find_device(arch));
  for (size_t i = 0; i < widths.size(); ++i)
    trials.add(kAttentionGroups[0], kTypes[(i + 1) % 2], widths[i], *find_device(arch));
  Vary vary;
  run_trials(trials, kSizes, std::ref(vary));
}

}  // namespace

TEST_CASE("attention by products of warps") { run({}, "sm_80", {80, 96, 128, 256}); }

TEST_CASE("attention by products of warpgroups") {
  run({.mma = true, .wgmma = true}, "sm_90a", {80, 96, 128, 256});
}

TEST_CASE("a plan for warpgroups on a device without them") { run({}, "sm_90a", {80}); }

TEST_CASE("attention whose queries and keys are infinite or no numbers") {
  Trials trials;
  trials.special_values = false;
  for (DType dtype : kTypes) trials.add(kAttentionGroups[0], dtype, 16, *find_device("sm_80"));
  Vary vary;
  run_trials(
      trials, {{70, 0, 200, 0, 0}, {9, 0, 60, 0, 0}},
      [&](const Kernel& kernel, llvm::ArrayRef<int64_t> values, std::vector<HostTensor>& inputs) {
        vary(kernel, values, inputs);
        constexpr float kSpecial[] = {INFINITY, -INFINITY, NAN, 65504, -0.0f};
        for (size_t operand : {0, 1}) {
          HostTensor& tensor = inputs[operand];
          for (int64_t i = 3; i < tensor.volume(); i += 211 + i % 7) {
            const float value = kSpecial[i % 5];
            tensor.data<uint16_t>()[i] =
                tensor.dtype == DType::f16 ? math::float_to_f16(value) : math::float_to_bf16(value);
          }
        }
      });
}

TEST_CASE("2^x is right to 2.9e-6, 1 at 0, and 0 where a weight is none") {
  double worst = 0;
  for (int i = 0; i <= 1000000; ++i) {
    const float x = -126.0f * static_cast<float>(i) / 1000000;
    const double right = std::exp2(static_cast<double>(x));
    worst = std::max(worst, std::abs(attention_exp2(x) - right) / right);
  }
  CHECK(worst < 2.9e-6);
  CHECK(worst > 1e-6);
  CHECK(attention_exp2(0) == 1);
  CHECK(attention_exp2(-127) == 0);
  CHECK(attention_exp2(-INFINITY) == 0);
  CHECK(std::isnan(attention_exp2(NAN)));
}

}  // namespace sinter
