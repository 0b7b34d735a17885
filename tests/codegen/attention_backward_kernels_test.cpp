// Kernels of attention's gradient, and of attention with its log-sums, compute what the host
// evaluator computes, bit for bit, by products of warps and of warpgroups.
#include <doctest/doctest.h>

#include "codegen/attention_trials.h"

namespace sinter::attention_backward_kernels_test {
namespace {

const std::vector<std::vector<int64_t>> kSizes = {
    {70, 0, 200, 0, 2}, {129, 0, 130, 0, 1}, {1, 0, 1, 0, 3}, {0, 0, 5, 0, 2}};

/// Log-sums of scores, some of tokens that see no key.
struct VaryGradients {
  VaryRanges ranges;

  void operator()(const Kernel& kernel, llvm::ArrayRef<int64_t> symbol_values,
                  std::vector<HostTensor>& inputs) {
    ranges(kernel, symbol_values, inputs);
    const Op& op = attention_of(kernel.group);
    if (!is_attention_gradient(op)) return;
    HostTensor& log_sums = *input_of(kernel.group, op.operands[kLogSumOperand], inputs);
    for (int64_t i = 0; i < log_sums.volume(); ++i)
      log_sums.data<float>()[i] =
          i % 11 == 3 ? -INFINITY : 4 + static_cast<float>(ranges.random() % 64) / 16;
  }
};

void run(const Capabilities& played, const char* arch, llvm::ArrayRef<int64_t> widths,
         double cache_bytes = 5e7) {
  DeviceDescription device = *find_device(arch);
  device.cache_bytes = cache_bytes;
  Trials trials;
  trials.played = played;
  trials.special_values = false;
  trials.every_order = false;
  for (size_t i = 0; i < kGradientGroups.size(); ++i)
    trials.add(kGradientGroups[i], kAttentionTypes[i % 2], 64, device);
  for (size_t i = 0; i < widths.size(); ++i)
    for (size_t group : {0, 1})
      trials.add(kGradientGroups[group], kAttentionTypes[(i + 1) % 2], widths[i], device);
  run_trials(trials, kSizes, VaryGradients());
}

}  // namespace

TEST_CASE("gradients by products of warps") { run({}, "sm_80", {128}); }

TEST_CASE("gradients by products of warpgroups") {
  run({.mma = true, .wgmma = true}, "sm_90a", {80, 128});
}

// The cache keeps the rows of some heads alone: the order of the blocks is another one.
TEST_CASE("a plan for warpgroups on a device without them, and with a small cache") {
  run({}, "sm_90a", {}, 1e5);
}

}  // namespace sinter::attention_backward_kernels_test
