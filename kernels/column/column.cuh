// Reductions down columns, in the order of ir/reduction_order.h.
//
// A thread sums 8 neighbouring columns over a run of neighbouring virtual lanes, one lane after the
// other. The contract's butterfly has ascending strides, so that it is a balanced tree over
// neighbouring lanes: a run combines in its thread, runs in their warp by shuffles, warps in shared
// memory, and blocks of a cluster in the shared memory of the first. All give the same bits.
//
// Threads of a block: [run][chunk of 8 columns].
#pragma once

#include "kernels/common/column_lane.cuh"
#include "kernels/isa/cluster.cuh"

namespace sinter {

// The tree over a run of `lanes` lanes, a power of two, given in ascending order: a binary counter,
// in which a digit 1 of place value v is the pending sum of v lanes.
template <typename Op, int lanes>
struct ColumnRun {
  using T = typename Op::T;
  static SINTER_DEVICE constexpr int levels() {
    int count = 0;
    while (1 << count < lanes) ++count;
    return count;
  }
  T pending[lanes == 1 ? 1 : levels()][8];
  T total[8];  // when the last lane has been added

  SINTER_DEVICE ColumnRun() {
#pragma unroll
    for (int e = 0; e < 8; ++e) total[e] = Op::identity();
  }
  SINTER_DEVICE void add(int lane, const ColumnLane<Op>& sums) {
    T value[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) value[e] = sums.value[e];
    bool carries = true;
#pragma unroll
    for (int level = 0; level < levels(); ++level) {
      const bool pairs = (lane >> level & 1) != 0;
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        if (carries && pairs) value[e] = Op::combine(pending[level][e], value[e]);
        if (carries && !pairs) pending[level][e] = value[e];
      }
      carries = carries && pairs;
    }
    if (carries) {
#pragma unroll
      for (int e = 0; e < 8; ++e) total[e] = value[e];
    }
  }
};

// Combines the runs of a block and hands its columns' values to the first block of the cluster, of
// `segments`, at `to` of its shared memory. Every thread calls it. `shared` holds 8 floats for each
// chunk and each of its warps, or runs where a warp has no two.
template <typename Op, int chunks, int runs, int segments>
SINTER_DEVICE void hand_over(typename Op::T (&total)[8], float* shared, float* to) {
  constexpr unsigned all = 0xffffffffu;
  constexpr int near = chunks < 32 ? 32 / chunks : 1;  // runs of a warp
  constexpr int left = runs / near;                    // values of a column
  static_assert(left >= 1 && left <= 32, "a warp combines what is left of a column");
#pragma unroll
  for (int stride = chunks; stride < 32; stride *= 2)
#pragma unroll
    for (int e = 0; e < 8; ++e)
      total[e] = Op::combine(total[e], __shfl_xor_sync(all, total[e], stride));
  const int thread = static_cast<int>(threadIdx.x);
  const int side = thread % chunks, run = thread / chunks;
  __syncthreads();  // all have read what was in shared memory
  if (run % near == 0) {
#pragma unroll
    for (int e = 0; e < 8; ++e) shared[(8 * side + e) * left + run / near] = Op::to_float(total[e]);
  }
  __syncthreads();
  constexpr int items = 8 * chunks * left, threads = chunks * runs;
#pragma unroll
  for (int first = 0; first < items; first += threads) {
    const int item = first + thread;
    typename Op::T value = item < items ? Op::from_float(shared[item]) : Op::identity();
#pragma unroll
    for (int stride = 1; stride < left; stride *= 2)
      value = Op::combine(value, __shfl_xor_sync(all, value, stride));
    if (item < items && item % left == 0)
      st_shared_cluster<segments>(to + item / left, 0, Op::to_float(value));
  }
}

// Joins the segments' values, which lie `stride` floats apart, into values of 8 columns.
template <typename Op, int segments>
SINTER_DEVICE void join_segments(typename Op::T (&out)[8], const float* values, int stride) {
#pragma unroll
  for (int e = 0; e < 8; ++e) {
    typename Op::T value[segments];
#pragma unroll
    for (int segment = 0; segment < segments; ++segment)
      value[segment] = Op::from_float(values[segment * stride + e]);
#pragma unroll
    for (int near = 1; near < segments; near *= 2)
#pragma unroll
      for (int segment = 0; segment < segments; segment += 2 * near)
        value[segment] = Op::combine(value[segment], value[segment + near]);
    out[e] = value[0];
  }
}

}  // namespace sinter
