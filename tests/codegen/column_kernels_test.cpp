// Kernels of column reductions compute what the host evaluator computes, bit for bit, however
// lanes are split over threads, blocks and clusters. The kernel text runs on the CPU.
#include <doctest/doctest.h>

#include "codegen/kernel_trials.h"

namespace sinter::column_kernels_test {
namespace {

/// Devices that make the schedule choose its different splits: with clusters and without, of many
/// multiprocessors and few, of narrow blocks.
std::vector<DeviceDescription> devices() {
  const DeviceDescription whole = *find_device("sm_90a"), old = *find_device("sm_80");
  DeviceDescription small = whole, narrow = whole;
  small.multiprocessors = 1;
  narrow.max_threads_per_block = 64;
  narrow.has.clusters = false;
  return {whole, old, small, narrow};
}

}  // namespace

TEST_CASE("columns of every height, split in many ways") {
  constexpr int64_t kHeights[] = {2, 9, 64, 100};
  Trials trials;
  size_t turn = 0;
  for (const GroupText& group : kColumnGroups)
    for (int64_t height : kHeights) {
      const std::vector<DeviceDescription> all = devices();
      trials.add(group, kFloats[turn % 3], height, all[turn % all.size()]);
      ++turn;
    }
  run_trials(trials, {{2, 37, 9, 16, 2}, {1, 8, 20, 72, 1}, {0, 0, 0, 0, 0}});
}

TEST_CASE("columns of more than 1024 lanes") {
  Trials trials;
  size_t turn = 0;
  for (const DeviceDescription& device : devices()) {
    trials.add(kColumnGroups[0], kFloats[turn++ % 3], 16384, device);
    trials.add(kColumnGroups[8], kFloats[turn % 3], 8193 + 8 * static_cast<int64_t>(turn), device);
  }
  run_trials(trials, {{1, 9, 0, 0}});
}

TEST_CASE("a number of rows that is known at the launch") {
  Trials trials;
  size_t turn = 0;
  for (const DeviceDescription& device : devices())
    for (int64_t width : {24, 100})
      trials.add(kColumnGroups[7], kFloats[turn++ % 3], width, device);
  run_trials(trials, {{0, 0, 2049, 0}, {0, 0, 100, 0}, {0, 0, 1, 0}, {0, 0, 0, 0}});
}

}  // namespace sinter::column_kernels_test
