// expert_linear; kernels/experts/order.h states its order of operations.
//
// A pair is a token and one of its experts. A block has a pair and a run of rows of the expert's
// matrix, and each of its warps kExpertWarpRows of them, whose loads are on their way together.
//
// Config: Element; kExperts; kRows and kLength of a matrix; kPairsOfRow: neighbouring pairs that
// multiply the same row of x.
#pragma once

#include "kernels/common/lane_sums.cuh"
#include "kernels/common/vector.cuh"
#include "kernels/experts/layout.h"
#include "kernels/experts/order.h"

namespace sinter {

// Elements at .. at + 7 of a row of `length` elements; 0 behind its end.
template <int length, typename T>
SINTER_DEVICE void load_expert_chunk(float (&out)[kExpertChunk], const T* row, int at) {
  if constexpr (length % kExpertChunk == 0) {
    load_chunk(out, row + at);
  } else {
#pragma unroll
    for (int e = 0; e < kExpertChunk; ++e) out[e] = at + e < length ? load(row + at + e) : 0.0f;
  }
}

// `out` takes elements of the result: out.set(at, x).
template <typename Config, typename Result>
SINTER_DEVICE void expert_linear(const typename Config::Element* x,
                                 const typename Config::Element* w, const int* experts,
                                 const Result& out) {
  constexpr int kBlocks = (Config::kRows + kExpertBlockRows - 1) / kExpertBlockRows;
  constexpr int kLength = Config::kLength, kRound = kExpertLanes * kExpertChunk;
  const long long pair = static_cast<long long>(blockIdx.x) / kBlocks;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first =
      static_cast<int>(blockIdx.x % kBlocks) * kExpertBlockRows + warp * kExpertWarpRows;
  if (first >= Config::kRows) return;
  const int expert = experts[pair];
  // A number that names no expert gives 0 (the op's attribute `checked`).
  const bool is_there = expert >= 0 && expert < Config::kExperts;
  const typename Config::Element* const row = x + pair / Config::kPairsOfRow * kLength;
  const typename Config::Element* matrix_row[kExpertWarpRows];
  float sums[kExpertWarpRows];
#pragma unroll
  for (int r = 0; r < kExpertWarpRows; ++r) {
    const int m = first + r < Config::kRows ? first + r : Config::kRows - 1;
    matrix_row[r] =
        w + (static_cast<long long>(is_there ? expert : 0) * Config::kRows + m) * kLength;
    sums[r] = 0.0f;
  }
#pragma unroll 2
  for (int at = lane * kExpertChunk; at < kLength; at += kRound) {
    float of_x[kExpertChunk], of_w[kExpertWarpRows][kExpertChunk];
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r)
      load_expert_chunk<kLength>(of_w[r], matrix_row[r], at);
    load_expert_chunk<kLength>(of_x, row, at);
#pragma unroll
    for (int r = 0; r < kExpertWarpRows; ++r)
#pragma unroll
      for (int e = 0; e < kExpertChunk; ++e) sums[r] = math::fma(of_w[r][e], of_x[e], sums[r]);
  }
  sum_lanes<1, kExpertLanes, kExpertWarpRows>(sums, lane);
  const int kept = first + kept_value<1, kExpertLanes, kExpertWarpRows>(lane);
  if (lane < kExpertWarpRows && kept < Config::kRows)
    out.set(pair * Config::kRows + kept, is_there ? sums[0] : 0.0f);
}

}  // namespace sinter
