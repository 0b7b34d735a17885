// n0 in [0, 4096]
// graph(%x0: bf16[n0, 32000], %x1: f32[n0], %x2: i32[n0], %x3: f32[n0], %x4: i32[n0], %x5: i32[n0]) -> (%v0) {
//   %v0 = sample %x0, %x1, %x2, %x3, %x4, %x5 : i32[n0]
// }
// launch: rows n0, items_per_row 1, symbolic_items 0, items_per_block 1, threads 512,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 1, items_without_clusters 0, most_blocks 0
// overlap: waits true, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 70
#include "kernels/common/launch.cuh"
#include "kernels/sample/sample.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(512, 2)
sample_c81ac86f(const bf16* x0, const float* x1, const int* x2, const float* x3, const int* x4, const int* x5, int* y0, long long n0) {
  griddepcontrol_launch_dependents();
  griddepcontrol_wait();
  __shared__ SampleShared shared;
  sample(x0, 32000, 32000, x1, x2, x3, x4, x5, y0, shared);
}
