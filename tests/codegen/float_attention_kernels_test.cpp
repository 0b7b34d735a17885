// Kernels around a float_attention compute what the host evaluator computes, bit for bit, whatever
// shares a block with a token; and they compile.
#include <doctest/doctest.h>

#include <cmath>

#include "codegen/attention_trials.h"
#include "codegen/float_attention_groups.h"
#include "ir/scalar_math.h"
#include "support/nvrtc.h"

namespace sinter::float_attention_kernels_test {
namespace {

const Op& float_attention_of(const Graph& group) {
  return *llvm::find_if(group.ops(),
                        [](const Op& op) { return order_of(op) == Order::float_attention; });
}

/// Sets some numbers of a mask to -inf, so that it hides keys.
void hide_some(HostTensor& mask, std::mt19937& random) {
  if (mask.dtype == DType::i1) return;  // random truth values hide some
  for (int64_t i = 0; i < mask.volume(); ++i) {
    if (random() % 3 != 0) continue;
    if (mask.dtype == DType::f16)
      mask.data<uint16_t>()[i] = math::float_to_f16(-INFINITY);
    else
      mask.data<float>()[i] = -INFINITY;
  }
}

/// Sets which keys the tokens see, another pattern in each call.
struct VaryKeys {
  std::mt19937 random{5};
  size_t turn = 0;

  void operator()(const Kernel& kernel, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
    const Graph& group = kernel.group;
    const Op& op = float_attention_of(group);
    HostTensor& first = *input_of(group, op.operands[3], inputs);
    HostTensor& last = *input_of(group, op.operands[4], inputs);
    const HostTensor& keys = *input_of(group, op.operands[1], inputs);
    const int64_t rows = keys.dims[keys.dims.size() - 2];
    if (op.operands.size() == 6) hide_some(*input_of(group, op.operands[5], inputs), random);
    if (rows == 0) return;
    const Ranges ranges =
        ranges_of(kPatterns[turn++ % std::size(kPatterns)], first.volume(), rows, random);
    std::copy(ranges.last.begin(), ranges.last.end(), last.data<int32_t>());
    if (&first != &last) std::copy(ranges.first.begin(), ranges.first.end(), first.data<int32_t>());
    if (!op.attrs.is_set(AttrName::checked) && !op.attrs.is_set(AttrName::any_range)) return;
    for (int64_t n = 0; n < first.volume(); n += 3) {
      first.data<int32_t>()[n] = n % 2 == 0 ? INT32_MIN : -7;
      last.data<int32_t>()[n] = n % 2 == 0 ? static_cast<int32_t>(rows) + 9 : INT32_MAX;
    }
  }
};

/// The number of tokens, the rows of the caches and the sequences: none, few, whole tiles, broken
/// ones.
const std::vector<std::vector<int64_t>> kSizes = {
    {70, 0, 200, 0, 2}, {1, 0, 1, 0, 1}, {129, 0, 130, 0, 1}, {0, 0, 5, 0, 3}, {9, 0, 64, 0, 0}};

}  // namespace

TEST_CASE("attention of float32 has the bits of the host") {
  Trials trials;
  trials.special_values = false;
  for (const GroupText& group : kFloatAttentionGroups)
    trials.add(group, DType::f32, 64, *find_device("sm_80"));
  for (int64_t width : {80, 96, 128})
    trials.add(kFloatAttentionGroups[0], DType::f32, width, *find_device("sm_80"));
  VaryKeys vary;
  run_trials(trials, kSizes, std::ref(vary));
}

TEST_CASE("heads of 256 elements, in blocks of 64 and of 32 tokens") {
  for (const char* arch : {"sm_80", "sm_86"}) {
    VaryKeys vary;
    Trials trials;
    trials.special_values = false;
    trials.add(kFloatAttentionGroups[0], DType::f32, 256, *find_device(arch));
    CHECK(trials.kernels.back().launch.threads == (std::string_view(arch) == "sm_80" ? 128 : 64));
    run_trials(trials, {{70, 0, 200, 0, 0}}, std::ref(vary));
  }
}

TEST_CASE("elements that are infinite or no numbers reach no token that does not see them") {
  Trials trials;
  trials.special_values = false;
  for (size_t i : {size_t{0}, size_t{2}, size_t{13}, size_t{14}})
    trials.add(kFloatAttentionGroups[i], DType::f32, 16, *find_device("sm_80"));
  VaryKeys vary;
  run_trials(
      trials, {{70, 0, 200, 0, 2}, {9, 0, 60, 0, 1}},
      [&](const Kernel& kernel, llvm::ArrayRef<int64_t> values, std::vector<HostTensor>& inputs) {
        vary(kernel, values, inputs);
        constexpr float kSpecial[] = {INFINITY, -INFINITY, NAN, 3e38f, -0.0f, 1e-45f};
        for (size_t operand : {0, 1, 2}) {
          HostTensor& tensor = inputs[operand];
          if (tensor.dtype != DType::f32) continue;
          for (int64_t i = 3; i < tensor.volume(); i += 211 + i % 7)
            tensor.data<float>()[i] = kSpecial[i % 6];
        }
      });
}

TEST_CASE("attention of float32 compiles for every device") {
  const NvrtcFile* nvrtc = nvrtc_or_skip();
  if (!nvrtc) return;
  for (const char* arch : {"sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    std::deque<Kernel> kernels;
    std::vector<KernelSource> sources;
    const auto add = [&](const GroupText& text, int64_t width) {
      auto kernel =
          emit_kernel(make_group(text, DType::f32, width), 0, group_symbols(), *find_device(arch));
      REQUIRE_MESSAGE(kernel.has_value(), (kernel ? "" : kernel.error().message()));
      kernels.push_back(std::move(*kernel));
      sources.push_back({kernels.back().name, kernels.back().source});
    };
    for (int64_t width : {64, 128, 256}) add(kFloatAttentionGroups[0], width);
    if (std::string_view(arch) == "sm_80")
      for (const GroupText& text : kFloatAttentionGroups) add(text, 80);
    const Status compiled = compile_or_find(*nvrtc, sources, arch);
    CHECK_MESSAGE(compiled.has_value(), (compiled ? "" : compiled.error().what));
  }
}

}  // namespace sinter::float_attention_kernels_test
