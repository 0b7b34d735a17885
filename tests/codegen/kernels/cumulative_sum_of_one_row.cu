// graph(%x0: f32[1, 1048576]) -> (%v0) {
//   %v0 = cumulative_sum %x0 {axis = 1} : f32[1, 1048576]
// }
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
cumulative_sum_25d9d709(const float* x0, float* y0) {
  pdl_trigger();
  pdl_wait();
  __shared__ ScanShared<Config> shared;
  scan_long_rows<Config>(x0, 1048576, y0, 1048576, shared);
}
