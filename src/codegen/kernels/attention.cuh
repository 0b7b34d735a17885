// attention_few; ir/attention_order.h states its order of operations.
//
// The splits of a token's heads are the blocks of a cluster: each leaves its sums in the shared
// memory of the block that joins them. A device without clusters has one of the blocks take all
// splits, one after the other.
#pragma once

#include "sinter/attention_keys.cuh"

namespace sinter {

template <typename Config>
struct AttentionShared {
  using Sizes = AttentionSizes<Config>;
  float sums[Sizes::warps][Sizes::round][Sizes::row];
  float largest[Sizes::tile][Sizes::warps], weights[Sizes::tile][Sizes::warps];
  // Of each split: the elements that this block joins, then the heads' m, then their l.
  float parts[Sizes::splits][Sizes::owned + 2 * Sizes::tile];
};

template <typename Config>
SINTER_DEVICE float largest_of_warps(const AttentionShared<Config>& shared, int h) {
  float largest = shared.largest[h][0];
#pragma unroll
  for (int w = 1; w < AttentionSizes<Config>::warps; ++w)
    largest = math::maximum(largest, shared.largest[h][w]);
  return largest;
}

// Joins the streams of each warp: in `shared` the largest m and the sums of weights of every warp;
// in `sums` what this lane keeps of its warp's sums. `active`: the warp has keys.
template <typename Config>
SINTER_DEVICE void join_warp(AttentionSums<Config::kTile>& sums, AttentionShared<Config>& shared,
                             bool active) {
  using Sizes = AttentionSizes<Config>;
  constexpr unsigned all = 0xffffffffu;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int h = 0; h < Sizes::tile; ++h) {
    float largest = sums.m[h];
    if (active) {
#pragma unroll
      for (int stride = Sizes::lanes; stride < 32; stride *= 2)
        largest = math::maximum(largest, __shfl_xor_sync(all, largest, stride));
    }
    if (lane == 0) shared.largest[h][warp] = largest;
  }
  __syncthreads();
#pragma unroll
  for (int h = 0; h < Sizes::tile; ++h) {
    float weights[1] = {0.0f};
    if (active) {
      const float scale = attention_weight(sums.m[h], largest_of_warps(shared, h));
      weights[0] = math::mul(sums.l[h], scale);
#pragma unroll
      for (int e = 0; e < 8; ++e) sums.value[h][e] = math::mul(sums.value[h][e], scale);
      sum_lanes<Sizes::lanes, 32, 8>(sums.value[h], lane);
      sum_lanes<Sizes::lanes, 32, 1>(weights, lane);
    }
    if (lane == 0) shared.weights[h][warp] = weights[0];
  }
}

// Adds the warps of the block and gives the sums of `split` to the blocks that join them.
template <typename Config>
SINTER_DEVICE void give_part(const AttentionSums<Config::kTile>& sums,
                             AttentionShared<Config>& shared, int split) {
  using Sizes = AttentionSizes<Config>;
  constexpr int width = Sizes::width, lanes = Sizes::lanes, kept = kept_values<lanes, 32, 8>();
  const int warp = threadIdx.x / 32, first = threadIdx.x % lanes * 8;
  float* part = shared.parts[split];
#pragma unroll
  for (int h0 = 0; h0 < Sizes::tile; h0 += Sizes::round) {
    if (first < width) {
      const int from = first + kept_value<lanes, 32, 8>(threadIdx.x % 32);
#pragma unroll
      for (int h = 0; h < Sizes::round; ++h)
#pragma unroll
        for (int i = 0; i < kept; ++i) shared.sums[warp][h][from + i] = sums.value[h0 + h][i];
    }
    __syncthreads();
    if (Sizes::blocks > 1 && h0 == 0)
      wait_for_cluster();  // its blocks have begun, their memory is there
    for (int i = threadIdx.x; i < Sizes::round * width; i += Sizes::threads) {
      float total = 0.0f;
#pragma unroll
      for (int w = 0; w < Sizes::warps; ++w)
        total = math::add(total, shared.sums[w][i / width][i % width]);
      const int element = h0 * width + i;
      give<Sizes::blocks>(part + element % Sizes::owned, element / Sizes::owned, total);
    }
    if constexpr (Sizes::round < Sizes::tile) __syncthreads();
  }
  for (int i = threadIdx.x; i < Sizes::blocks * Sizes::tile; i += Sizes::threads) {
    const int h = i % Sizes::tile, to = i / Sizes::tile;
    float weights = 0.0f;
#pragma unroll
    for (int w = 0; w < Sizes::warps; ++w) weights = math::add(weights, shared.weights[h][w]);
    give<Sizes::blocks>(part + Sizes::owned + h, to, largest_of_warps(shared, h));
    give<Sizes::blocks>(part + Sizes::owned + Sizes::tile + h, to, weights);
  }
}

// Joins the splits of the elements that block `rank` owns; `out`: the first of the tile's.
template <typename Config, typename T>
SINTER_DEVICE void join_splits(T* out, const AttentionShared<Config>& shared, int rank) {
  using Sizes = AttentionSizes<Config>;
  constexpr int elements = Sizes::tile * Sizes::width;
  for (int i = threadIdx.x; i < Sizes::owned && rank * Sizes::owned + i < elements;
       i += Sizes::threads) {
    const int element = rank * Sizes::owned + i, h = Sizes::owned + element / Sizes::width;
    float largest = shared.parts[0][h];
#pragma unroll
    for (int s = 1; s < Sizes::splits; ++s) largest = math::maximum(largest, shared.parts[s][h]);
    float total = 0.0f, weights = 0.0f;
#pragma unroll
    for (int s = 0; s < Sizes::splits; ++s) {
      const float scale = attention_weight(shared.parts[s][h], largest);
      weights = math::fma(scale, shared.parts[s][h + Sizes::tile], weights);
      total = math::fma(scale, shared.parts[s][i], total);
    }
    store(out + element, math::div(total, weights));
  }
}

// Blocks: [token][tile][split], those of a token's tile a cluster. A block's threads: `lanes` lanes
// for each stream.
template <typename Config, typename T>
SINTER_DEVICE void attention_few(const T* q, long long q_stride, const T* keys,
                                 long long keys_stride, const T* values, long long values_stride,
                                 const int* first, const int* last, T* out,
                                 AttentionShared<Config>& shared) {
  using Sizes = AttentionSizes<Config>;
  constexpr int tile = Sizes::tile, all_tiles = Config::kKvHeads * Sizes::tiles;
  const int rank = blockIdx.x % Sizes::splits;
  if (rank >= Sizes::blocks) return;
  if constexpr (Sizes::blocks > 1) enter_cluster();
  const int rest = blockIdx.x / Sizes::splits % all_tiles;
  const long long token = blockIdx.x / (Sizes::splits * all_tiles);
  const int kv_head = rest / Sizes::tiles,
            head0 = kv_head * Sizes::group + rest % Sizes::tiles * tile;

  const AttentionRange range = attention_range(first[token], last[token], Config::kWindow);
  AttentionQuery<Config, T> query(q + token * q_stride + head0 * Config::kWidth,
                                  threadIdx.x % Sizes::lanes);
  for (int split = rank; split < Sizes::splits; split += Sizes::blocks) {
    const AttentionRange part = attention_part(range, Sizes::splits, split);
    AttentionSums<tile> sums;
    const bool active =
        kAttentionBlock * (threadIdx.x / 32 * attention_neighbours(Sizes::lanes)) < part.count;
    if (active)
      attend<Config>(sums, query, keys + kv_head * Config::kWidth, keys_stride,
                     values + kv_head * Config::kValueWidth, values_stride, part);
    join_warp<Config>(sums, shared, active);
    give_part<Config>(sums, shared, split);
    if constexpr (Sizes::blocks == 1) __syncthreads();
  }
  if constexpr (Sizes::blocks > 1) {
    arrive_in_cluster();
    wait_for_cluster();
  }
  join_splits<Config>(out + (token * Config::kHeads + head0) * Config::kValueWidth, shared, rank);
}

}  // namespace sinter
