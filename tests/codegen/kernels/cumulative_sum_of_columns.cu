// n0 in [0, 4096]
// graph(%x0: f16[n0, 24]) -> (%v0) {
//   %v0 = cumulative_sum %x0 {axis = 0, reverse = 1, exclusive = 1} : f16[n0, 24]
// }
// launch: rows 24, items_per_row 1, symbolic_items 0, items_per_block 64, threads 1024,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits true, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/scan/scan_columns.cuh"
using namespace sinter;

struct Config {
  using Element = f16;
  static constexpr bool kReverse = true, kExclusive = true;
  static constexpr int kChunks = 32;
  static constexpr bool kPair = true;
};

extern "C" __global__ void __launch_bounds__(1024)
cumulative_sum_8e3b945a(const f16* x0, f16* y0, long long n0) {
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();
  __shared__ ColumnShared<Config> shared;
  scan_columns<Config>(x0, y0, {1, n0, 24, n0 * 24, 24}, shared);
}
