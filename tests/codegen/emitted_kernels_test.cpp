// Emitted kernels compute what the host evaluator computes, bit for bit: over element types,
// widths, forms (on chip and looped) and numbers of threads. The kernel text runs on the CPU.
#include <doctest/doctest.h>

#include <set>

#include "codegen/kernel_trials.h"
#include "codegen/offset_groups.h"

namespace sinter::emitted_kernels_test {
namespace {

/// Devices that make the schedule choose its different forms.
std::vector<DeviceDescription> devices() {
  const DeviceDescription whole = *find_device("sm_90a");
  DeviceDescription looped = whole, narrow = whole, narrow_looped = whole;
  looped.registers_per_block = 0;
  narrow.max_threads_per_block = 64;
  narrow_looped.max_threads_per_block = 32;
  narrow_looped.registers_per_block = 0;
  return {whole, looped, narrow, narrow_looped};
}

}  // namespace

TEST_CASE("rows of every width, on chip and looped, by many threads and few") {
  constexpr int64_t kWidths[] = {1, 3, 7, 8, 100, 127, 129, 1024, 4095};
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kRowGroups)
    for (int64_t width : kWidths)
      for (const DeviceDescription& device : devices())
        trials.add(group, kFloats[turn++ % 3], width, device);
  run_trials(trials, {{3, 5, 0, 0}});
}

TEST_CASE("rows longer than 1024 lanes") {
  Trials trials;
  for (const DeviceDescription& device : devices()) {
    trials.add(kRowGroups[0], DType::f16, 9000, device);
    trials.add(kRowGroups[1], DType::f32, 16384, device);
    trials.add(kRowGroups[2], DType::bf16, 12288, device);
  }
  run_trials(trials, {{2, 0, 0, 0}});
}

TEST_CASE("rows that the blocks of a cluster share") {
  DeviceDescription device = *find_device("sm_90a");
  device.multiprocessors = 1;  // every block but the last prefetches for the next one
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kRowGroups)
    trials.add(group, kFloats[turn % 3], turn % 2 == 0 ? 16384 : 20001, device), ++turn;
  for (int64_t width : {32768, 40968, 65536}) trials.add(kRowGroups[1], DType::f16, width, device);
  std::set<int64_t> clusters;
  for (const Kernel& kernel : trials.kernels) clusters.insert(kernel.launch.cluster);
  CHECK(clusters == std::set<int64_t>{1, 2, 4});
  run_trials(trials, {{3, 0, 0, 0}});
}

TEST_CASE("groups of views, gathers, appends, parts and several results") {
  Trials trials;
  const std::vector<DeviceDescription> all = devices();
  for (const GroupText& group : kFixedGroups)
    for (size_t d = 0; d < all.size(); ++d) trials.add(group, kFloats[d % 3], 0, all[d]);
  run_trials(trials, {{5, 3, 21, 16}, {1, 1, 300, 1024}, {0, 0, 0, 0}, {37, 2, 1, 8}});
}

TEST_CASE("parts side by side, of any numbers of rows and threads") {
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kPartGroups)
    for (int64_t width : {8, 100, 4096})
      for (const DeviceDescription& device : devices())
        trials.add(group, kFloats[turn++ % 3], width, device);
  run_trials(trials, {{5, 3, 21, 16}, {0, 7, 300, 8}, {9, 0, 1, 16}, {0, 0, 0, 0}});
}

TEST_CASE("every element type") {
  Trials trials;
  for (const GroupText& group : kFixedGroups)
    for (DType dtype : kFloats) trials.add(group, dtype, 0, devices()[0]);
  run_trials(trials, {{7, 3, 40, 24}});
}

TEST_CASE("operands that begin at the second element of a tensor") {
  Trials trials;
  for (int64_t width : kOffsetWidths)
    for (const OffsetGroup& group : offset_groups(width))
      for (DType dtype : kFloats) trials.add(group.view(), dtype, width, *find_device("sm_90a"));
  run_trials(trials, {{0, 0, 0, 0}});
}

}  // namespace sinter::emitted_kernels_test
