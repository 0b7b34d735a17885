// Kernels around a gemv compute what the host evaluator computes, bit for bit: their text runs on
// the CPU, where several tokens of 16-bit types have the stated order too.
#include <doctest/doctest.h>

#include "codegen/kernel_trials.h"
#include "codegen/small_integers.h"
#include "kernels/gemv/schedule.h"

namespace sinter::gemv_kernels_test {
namespace {

/// Few multiprocessors, so that a block has several rows of the matrix and its runs differ in
/// length.
DeviceDescription device_of(const char* arch, int64_t multiprocessors) {
  DeviceDescription device = *find_device(arch);
  device.multiprocessors = multiprocessors;
  return device;
}

/// Every number of tokens that the kernel treats in its own way, and none.
const std::vector<std::vector<int64_t>> kTokens = {{0, 0, 0, 0, 1}, {0, 0, 0, 0, 2},
                                                   {0, 0, 0, 0, 3}, {0, 0, 0, 0, 5},
                                                   {0, 0, 0, 0, 8}, {0, 0, 0, 0, 0}};

/// A form of its own for the group's product.
TunedForms other_form(const DeviceDescription& device, const GroupText& group, DType dtype,
                      int64_t width, size_t turn) {
  TunedForms forms;
  const Graph graph = make_group(group, dtype, width);
  for (const Op& op : graph.ops()) {
    if (order_of(op) != Order::gemv) continue;
    const GemvProduct product = gemv_product(graph, op, group_symbols());
    const auto candidates = gemv_form_candidates(product, device);
    REQUIRE(candidates.size() > 1);
    forms["gemv"][product.key()] = to_form(candidates[1 + turn % (candidates.size() - 1)]);
  }
  REQUIRE(forms.size() == 1);
  return forms;
}

}  // namespace

TEST_CASE("gemvs with and without neighbours, of every element type") {
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kGemvGroups)
    for (DType dtype : {DType::f32, turn++ % 2 == 0 ? DType::f16 : DType::bf16})
      trials.add(group, dtype, 264, device_of("sm_90a", 3));
  // Every order of threads with 5 tokens: a whole tile of them and what is left.
  run_trials(trials, {kTokens[3], kTokens[0], kTokens[1], kTokens[2], kTokens[4], kTokens[5]});
}

// The first case plays every order of threads; the others one in each call, in turn.
TEST_CASE("gemvs of rows of one chunk, of whole stages and of broken ones") {
  Trials trials;
  trials.every_order = false;
  size_t turn = 0;
  for (const GroupText& group : kGemvGroups)
    for (int64_t width : {8, 1024, 4360})
      trials.add(group, kFloats[turn++ % 3], width, device_of(width == 8 ? "sm_90a" : "sm_80", 2));
  run_trials(trials, {kTokens[0], kTokens[2]});
}

// Pipelines filled by copies that the CPU plays: stages are issued and consumed in the same order,
// in as many places as the launch's shared memory has.
TEST_CASE("a pipeline delivers the stages that were issued") {
  Trials trials;
  trials.played = {.bulk_copy = true};
  trials.every_order = false;
  size_t turn = 0;
  for (const GroupText& group : kGemvGroups)
    for (int64_t width : {turn % 4 < 2 ? 8 : 2056, 264}) {
      const DType dtype = kFloats[turn++ % 3];
      trials.add(group, dtype, width, device_of("sm_90a", 2));
      if (width != 264) continue;
      const DeviceDescription device = device_of("sm_90a", 3);
      trials.add(group, dtype, width, device, other_form(device, group, dtype, width, turn));
    }
  run_trials(trials, {kTokens[0], kTokens[2], kTokens[5]});
}

// Sums of small integers are exact in every order: what tensor cores add must be what the evaluator
// adds.
TEST_CASE("tiles of several tokens have every product once") {
  Trials trials;
  std::vector<int64_t> widths = {8, 136, 2056, 4360}, multiprocessors = {1, 2};
  SUBCASE("through pipelines") { trials.played = {.mma = true, .bulk_copy = true}; }
  SUBCASE("from memory") {
    trials.played = {.mma = true};
    widths = {136, 2056};
    multiprocessors = {1};
  }
  trials.every_order = trials.special_values = false;
  size_t turn = 0;
  for (const GroupText& group : kGemvGroups) {
    if (group.name != std::string_view("gemv_alone") &&
        group.name != std::string_view("gemv_bias_residual") &&
        group.name != std::string_view("gemv_of_one_row"))
      continue;
    ++turn;  // a width has another type and number of multiprocessors in the next group
    for (size_t w = 0; w < widths.size(); ++w) {
      const DType dtype = (w + turn) % 2 == 0 ? DType::f16 : DType::bf16;
      const DeviceDescription device =
          device_of("sm_90a", multiprocessors[(w / 2 + turn) % multiprocessors.size()]);
      trials.add(group, dtype, widths[w], device);
      if (widths[w] > 2000)
        trials.add(group, dtype, widths[w], device,
                   other_form(device, group, dtype, widths[w], turn + w));
    }
  }
  run_trials(trials, {kTokens[1], kTokens[2], kTokens[4]},
             [](const Kernel&, llvm::ArrayRef<int64_t>, std::vector<HostTensor>& inputs) {
               for (HostTensor& tensor : inputs) make_small_integers(tensor);
             });
}

TEST_CASE("no form of the pipeline changes a bit") {
  Trials trials;
  trials.every_order = false;
  size_t turn = 0;
  for (const GroupText& group : kGemvGroups)
    for (int64_t width : {264, 2056}) {
      const DType dtype = kFloats[turn % 3];
      const DeviceDescription device = device_of("sm_90a", 3);
      trials.add(group, dtype, width, device, other_form(device, group, dtype, width, turn++));
    }
  run_trials(trials, {kTokens[0], kTokens[2], kTokens[4]});
}

}  // namespace sinter::gemv_kernels_test
