// n0 in [0, 4096]
// graph(%x0: bf16[n0, 4096]) -> (%v0) {
//   %v0 = cumulative_sum %x0 {axis = 1} : bf16[n0, 4096]
// }
// launch: rows n0, items_per_row 1, symbolic_items 0, items_per_block 4, threads 128,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits false, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/scan/scan_rows.cuh"
using namespace sinter;

struct Config {
  using Element = bf16;
  static constexpr bool kReverse = false, kExclusive = false;
  static constexpr bool kAligned = true;
  static constexpr int kLanes = 32, kWarps = 1, kGroups = 4, kThreads = 128, kSegments = 1;
};

extern "C" __global__ void __launch_bounds__(128, 6)
cumulative_sum_36262c20(const bf16* __restrict__ x0, bf16* __restrict__ y0, long long n0) {
  scan_rows<Config>(x0, 4096, y0, n0, 4096);
}
