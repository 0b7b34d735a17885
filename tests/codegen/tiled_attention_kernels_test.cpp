// Kernels around a tiled_attention compute what the host evaluator computes, bit for bit: on the
// CPU tensor cores add in the order that kernels/tiled_attention/order.h states for it. Products of
// warps and of warpgroups, swizzled tiles, barriers and the roles of warps are played.
#include <doctest/doctest.h>

#include <cmath>

#include "codegen/attention_trials.h"
#include "ir/scalar_math.h"
#include "kernels/tiled_attention/order.h"

namespace sinter::tiled_attention_kernels_test {
namespace {

/// The number of tokens and the rows of the caches: none, few, whole tiles, broken ones.
const std::vector<std::vector<int64_t>> kSizes = {
    {70, 0, 200, 0, 0}, {1, 0, 1, 0, 0}, {129, 0, 130, 0, 0}, {0, 0, 5, 0, 0}};
/// The same, and the number of sequences.
const std::vector<std::vector<int64_t>> kSequenceSizes = {
    {70, 0, 200, 0, 2}, {1, 0, 1, 0, 3}, {129, 0, 130, 0, 1}, {0, 0, 5, 0, 2}};

/// The groups on few multiprocessors, where blocks of warpgroups take tiles of several sequences.
void run_on_few(const std::vector<GroupText>& groups, int64_t width,
                const std::vector<std::vector<int64_t>>& sizes, const Capabilities& played,
                const char* arch) {
  DeviceDescription few = *find_device(arch);
  few.multiprocessors = 3;
  Trials trials;
  trials.played = played;
  trials.special_values = false;
  trials.every_order = false;
  for (size_t i = 0; i < groups.size(); ++i)
    trials.add(groups[i], kAttentionTypes[i % 2], width, few);
  VaryRanges vary;
  run_trials(trials, sizes, std::ref(vary));
}

void run_sequences(const Capabilities& played, const char* arch) {
  run_on_few(kSequenceGroups, 64, kSequenceSizes, played, arch);
}

void run(const Capabilities& played, const char* arch, llvm::ArrayRef<int64_t> widths) {
  Trials trials;
  trials.played = played;
  trials.special_values = false;
  trials.every_order = false;
  for (size_t i = 0; i < kAttentionGroups.size(); ++i)
    trials.add(kAttentionGroups[i], kAttentionTypes[i % 2], 64, *find_device(arch));
  for (size_t i = 0; i < widths.size(); ++i)
    trials.add(kAttentionGroups[0], kAttentionTypes[(i + 1) % 2], widths[i], *find_device(arch));
  VaryRanges vary;
  run_trials(trials, kSizes, std::ref(vary));
}

}  // namespace

TEST_CASE("attention by products of warps") { run({}, "sm_80", {72, 80, 96, 128, 256}); }

TEST_CASE("attention by products of warpgroups") {
  run({.mma = true, .wgmma = true}, "sm_90a", {72, 80, 96, 128, 256});
}

TEST_CASE("sequences and masks by products of warps") { run_sequences({}, "sm_80"); }

TEST_CASE("sequences and masks by products of warpgroups") {
  run_sequences({.mma = true, .wgmma = true}, "sm_90a");
}

TEST_CASE("tiles of keys that a summary of the mask hides are left out") {
  const std::pair<Capabilities, const char*> forms[] = {{{}, "sm_80"},
                                                        {{.mma = true, .wgmma = true}, "sm_90a"}};
  for (const auto& [played, arch] : forms)
    run_on_few(kTileGroups, 0,
               {{140, 0, 400, 0, 2}, {70, 0, 390, 0, 1}, {20, 0, 300, 0, 3}, {1, 0, 1, 0, 1}},
               played, arch);
}

TEST_CASE("blocks that take several items, sorted by the keys that they see") {
  DeviceDescription few = *find_device("sm_90a");
  few.multiprocessors = 3;
  for (const Capabilities& played : {Capabilities{.mma = true, .wgmma = true}, Capabilities{}}) {
    Trials trials;
    trials.played = played;
    trials.special_values = false;
    trials.every_order = false;
    for (const char* name : {"tiled_groups_of_merged_projection", "tiled_unaligned", "tiled_heads"})
      trials.add(
          *llvm::find_if(kAttentionGroups,
                         [&](const GroupText& group) { return group.name == std::string(name); }),
          DType::f16, 256, few);
    VaryRanges vary;
    run_trials(trials, {{500, 0, 600, 0, 0}, {300, 0, 301, 0, 0}}, std::ref(vary));
  }
}

TEST_CASE("blocks that take pairs of tiles, and what is left of a head's tiles") {
  const char* text = R"(
graph(%q: DTYPE[N, 64], %k: DTYPE[K, 32], %v: DTYPE[K, 32], %first: i32[N], %last: i32[N]) -> (%y) {
  %y = attention %q, %k, %v, %first, %last {order = tiled_attention, heads = 4, kv_heads = 2, scale = 0.25, window = 300} : DTYPE[N, 64]
})";
  const auto causal = [](const Kernel&, llvm::ArrayRef<int64_t> values,
                         std::vector<HostTensor>& inputs) {
    for (int32_t n = 0; n < values[0]; ++n) {
      inputs[3].data<int32_t>()[n] = 0;
      inputs[4].data<int32_t>()[n] = n;
    }
  };
  for (int64_t multiprocessors : {1, 2, 3}) {
    DeviceDescription few = *find_device("sm_90a");
    few.multiprocessors = multiprocessors;
    Trials trials;
    trials.played = {.mma = true, .wgmma = true};
    trials.special_values = false;
    trials.every_order = false;
    trials.add({"pairs", 0, text}, DType::bf16, 0, few);
    // 6 and 5 tiles of 4 heads: 12 pairs; 8 pairs and a tile in the middle.
    run_trials(trials, {{700, 0, 700, 0, 0}, {600, 0, 600, 0, 0}}, causal);
  }
}

TEST_CASE("a plan for warpgroups on a device without them") { run({}, "sm_90a", {72, 96}); }

TEST_CASE("a result that is memory takes words, one of other ops elements") {
  const auto takes_words = [](const char* name) {
    const GroupText& text = *llvm::find_if(
        kAttentionGroups, [&](const GroupText& group) { return group.name == std::string(name); });
    const auto kernel =
        emit_kernel(make_group(text, DType::bf16, 64), 0, group_symbols(), *find_device("sm_90a"));
    REQUIRE(kernel.has_value());
    return kernel->source.find("set_words") != std::string::npos;
  };
  CHECK(takes_words("tiled_heads"));
  CHECK(!takes_words("tiled_gated_of_a_sum"));
}

TEST_CASE("tiles of keys and values are bulk copies where tensor maps describe them") {
  const auto maps = [](const char* name, int64_t width, const char* arch) {
    const GroupText& text = *llvm::find_if(
        kAttentionGroups, [&](const GroupText& group) { return group.name == std::string(name); });
    const auto kernel =
        emit_kernel(make_group(text, DType::bf16, width), 0, group_symbols(), *find_device(arch));
    REQUIRE(kernel.has_value());
    CHECK((kernel->minimum_arch == 90) == !kernel->tensor_maps.empty());
    return kernel->tensor_maps;
  };
  const auto whole = maps("tiled_heads", 64, "sm_90a");
  REQUIRE(whole.size() == 2);
  CHECK(whole[0].input == 1);
  CHECK(whole[1].input == 2);
  CHECK(whole[0].box == std::vector<int64_t>{64, 1, 128});
  CHECK(maps("tiled_heads", 80, "sm_90a")[1].box == std::vector<int64_t>{16, 1, 128});
  CHECK(maps("tiled_groups_of_merged_projection", 0, "sm_90a")[0].dims[1].is(2));
  // Padded heads, few stages, rows of 38 elements, a window, another device.
  CHECK(maps("tiled_heads", 72, "sm_90a").empty());
  CHECK(maps("tiled_heads", 128, "sm_90a").empty());
  CHECK(maps("tiled_unaligned", 0, "sm_90a").empty());
  CHECK(maps("tiled_sink", 0, "sm_90a").empty());
  CHECK(maps("tiled_heads", 64, "sm_80").empty());
}

TEST_CASE("attention whose queries and keys are infinite or no numbers") {
  Trials trials;
  trials.special_values = false;
  for (DType dtype : kAttentionTypes)
    trials.add(kAttentionGroups[0], dtype, 16, *find_device("sm_80"));
  VaryRanges vary;
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

}  // namespace sinter::tiled_attention_kernels_test
