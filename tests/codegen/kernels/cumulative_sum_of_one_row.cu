// graph(%x0: f32[1, 1048576]) -> (%v0) {
//   %v0 = cumulative_sum %x0 {axis = 1} : f32[1, 1048576]
// }
// launch: rows 1, items_per_row 1, symbolic_items 0, items_per_block 1, threads 512,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 8, items_without_clusters 0, most_blocks 0
// overlap: waits true, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 90
#include "kernels/common/launch.cuh"
#include "kernels/scan/scan_rows.cuh"
using namespace sinter;

struct Config {
  using Element = float;
  static constexpr bool kReverse = false, kExclusive = false;
  static constexpr bool kAligned = true;
  static constexpr int kLanes = 32, kWarps = 16, kGroups = 2, kThreads = 512, kSegments = 8;
};

extern "C" __global__ void __launch_bounds__(512)
cumulative_sum_731d691e(const float* x0, float* y0) {
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();
  __shared__ ScanShared<Config> shared;
  scan_long_rows<Config>(x0, 1048576, y0, 1048576, shared);
}
