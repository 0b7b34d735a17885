// graph(%x0: bf16[16384, 4096], %x1: bf16[16384, 4096], %x2: bf16[16384, 1], %x3: bf16[4096]) -> (%v3, %v5) {
//   %v0 = sub %x1, %x2 : bf16[16384, 4096]
//   %v1 = mul %x0, %v0 : bf16[16384, 4096]
//   %v2 = reduce_sum %v1 {axes = [0]} : bf16[1, 4096]
//   %v3 = mul %v2, %x3 : bf16[1, 4096]
//   %v4 = reduce_sum %x0 {axes = [0]} : bf16[1, 4096]
//   %v5 = reshape %v4 : bf16[4096]
// }
// launch: rows 1, items_per_row 64, symbolic_items 0, items_per_block 1, threads 256,
//   shared_bytes 0, wanted_shared_bytes 0, cluster 8, items_without_clusters 0, most_blocks 0
// overlap: waits false, triggers_after_wait false, early_inputs [], early_caches []
// minimum_arch: 90
#include "kernels/common/launch.cuh"
#include "kernels/column/column.cuh"
#include "kernels/common/vector.cuh"
using namespace sinter;

extern "C" __global__ void __launch_bounds__(256, 2)
sub_mul_reduce_sum_mul_reduce_sum_69855191(const bf16* __restrict__ x0, const bf16* __restrict__ x1, const bf16* __restrict__ x2, const bf16* __restrict__ x3, bf16* __restrict__ y0, bf16* __restrict__ y1) {
  __shared__ float shared[512];
  __shared__ float totals[1024];
  const int side = threadIdx.x % 8, run = threadIdx.x / 8;
  const int blocks = cluster_nctaid_x(), rank = blockIdx.x % blocks;
  const long long tile = blockIdx.x / blocks;
  constexpr long long slice = 0;
  const int i = static_cast<int>(8 * (tile * 8 + side));
  const bool live = i < 4096;
  barrier_cluster_arrive_relaxed();
  for (int segment = rank; segment < 8; segment += blocks) {
    ColumnRun<Sum, 4> run0;
    ColumnRun<Sum, 4> run1;
    if (live) {
#pragma unroll 1
      for (int own = 0; own < 4; ++own) {
        ColumnLane<Sum> lane0;
        ColumnLane<Sum> lane1;
        for (long long first = 8ll * ((segment * 32 + run) * 4 + own), end = hidden(16384ll); first < end; first += 8192) {
#pragma unroll
          for (int k = 0; k < 8; ++k) {
            const long long row = first + k;
            const float v2 = load(x2 + row);
            float v0[8];
            load_chunk(v0, x0 + row * 4096 + i);
            float v1[8];
            load_chunk(v1, x1 + row * 4096 + i);
#pragma unroll
            for (int e = 0; e < 8; ++e) {
              const float v3 = round_bf16(math::sub(v1[e], v2));
              const float v4 = round_bf16(math::mul(v0[e], v3));
              lane0.take(e, v4);
              lane1.take(e, v0[e]);
            }
          }
        }
        run0.add(own, lane0);
        run1.add(own, lane1);
      }
    }
    if (segment == rank) barrier_cluster_wait();
    hand_over<Sum, 8, 32, 8>(run0.total, shared, totals + segment * 64);
    hand_over<Sum, 8, 32, 8>(run1.total, shared, totals + 512 + segment * 64);
  }
  __syncthreads();
  barrier_cluster_arrive();
  barrier_cluster_wait();
  if (live && run == 0 && rank == 0) {
    float s0[8];
    join_segments<Sum, 8>(s0, totals + 0 + 8 * side, 64);
#pragma unroll
    for (int e = 0; e < 8; ++e) s0[e] = round_bf16(s0[e]);
    float s1[8];
    join_segments<Sum, 8>(s1, totals + 512 + 8 * side, 64);
#pragma unroll
    for (int e = 0; e < 8; ++e) s1[e] = round_bf16(s1[e]);
    float v0[8];
    load_chunk(v0, x3 + i);
    float o0[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      o0[e] = math::mul(s0[e], v0[e]);
    }
    store_chunk(y0 + i, o0);
    store_chunk(y1 + i, s1);
  }
}
