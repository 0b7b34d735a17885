// decode_attention; kernels/decode_attention/order.h states its order of operations.
//
// The splits of a token's heads are the blocks of a cluster: each leaves its sums in the shared
// memory of the block that joins them. Launched without clusters, on devices that have none or
// where there are tokens enough to fill the device, a block takes all splits of its heads, one
// after the other.
#pragma once

#include "kernels/decode_attention/attention_keys.cuh"
#include "kernels/isa/cluster.cuh"

namespace sinter {

template <typename Config>
struct AttentionShared {
  using Sizes = AttentionSizes<Config>;
  float sums[Sizes::warps][Sizes::round][Sizes::row];
  float largest[Sizes::tile][Sizes::warps], weights[Sizes::tile][Sizes::warps];
  // For each split: the elements that this block joins; after the tile's elements, the heads' m,
  // then their l.
  float partials[Sizes::splits][Sizes::elements + 2 * Sizes::tile];
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
SINTER_DEVICE void join_warp(AttentionSums<Config>& sums, AttentionShared<Config>& shared,
                             bool active) {
  using Sizes = AttentionSizes<Config>;
  using Scores = AttentionScores<Config>;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head0 = Scores::head(lane);
#pragma unroll
  for (int i = 0; i < Scores::heads; ++i) {
    float largest = sums.m[i];
    if (active) {
#pragma unroll
      for (int stride = Sizes::lanes; stride < 32; stride *= 2)
        largest = math::maximum(largest, __shfl_xor_sync(0xffffffffu, largest, stride));
    }
    // The first lanes keep all heads.
    if (lane < Sizes::tile / Scores::heads) shared.largest[head0 + i][warp] = largest;
  }
  __syncthreads();
  float scale[Scores::heads];
#pragma unroll
  for (int i = 0; i < Scores::heads; ++i)
    scale[i] = attention_weight(sums.m[i], largest_of_warps(shared, head0 + i));
#pragma unroll
  for (int h = 0; h < Sizes::tile; ++h) {
    float weights[1] = {0.0f};
    if (active) {
      const float by = Scores::of_keeper(scale[h % Scores::heads], h);
      weights[0] = math::mul(sums.l[h], by);
#pragma unroll
      for (int e = 0; e < 8; ++e) sums.value[h][e] = math::mul(sums.value[h][e], by);
      sum_lanes<Sizes::lanes, 32, 8>(sums.value[h], lane);
      sum_lanes<Sizes::lanes, 32, 1>(weights, lane);
    }
    if (lane == 0) shared.weights[h][warp] = weights[0];
  }
}

// Elements that each of `blocks` blocks joins.
template <typename Config>
SINTER_DEVICE constexpr int joined_elements(int blocks) {
  return (AttentionSizes<Config>::elements + blocks - 1) / blocks;
}

// Adds the warps of the block and gives the sums of `split` to the blocks that join them.
template <typename Config, int blocks>
SINTER_DEVICE void give_partial(const AttentionSums<Config>& sums, AttentionShared<Config>& shared,
                                int split) {
  using Sizes = AttentionSizes<Config>;
  constexpr int owned = joined_elements<Config>(blocks);
  constexpr int width = Sizes::width, lanes = Sizes::lanes, kept = kept_values<lanes, 32, 8>();
  const int warp = threadIdx.x / 32, first = threadIdx.x % lanes * 8;
  float* partial = shared.partials[split];
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
    if (blocks > 1 && h0 == 0)
      barrier_cluster_wait();  // its blocks have begun, their memory is there
    for (int i = threadIdx.x; i < Sizes::round * width; i += Sizes::threads) {
      float total = 0.0f;
#pragma unroll
      for (int w = 0; w < Sizes::warps; ++w)
        total = math::add(total, shared.sums[w][i / width][i % width]);
      const int element = h0 * width + i;
      st_shared_cluster<blocks>(partial + element % owned, element / owned, total);
    }
    if constexpr (Sizes::round < Sizes::tile) __syncthreads();
  }
  for (int i = threadIdx.x; i < blocks * Sizes::tile; i += Sizes::threads) {
    const int h = i % Sizes::tile, to = i / Sizes::tile;
    float weights = 0.0f;
#pragma unroll
    for (int w = 0; w < Sizes::warps; ++w) weights = math::add(weights, shared.weights[h][w]);
    st_shared_cluster<blocks>(partial + Sizes::elements + h, to, largest_of_warps(shared, h));
    st_shared_cluster<blocks>(partial + Sizes::elements + Sizes::tile + h, to, weights);
  }
}

// Joins the splits of the elements that block `rank` owns; `out`: the first of the tile's.
template <typename Config, int blocks, typename T>
SINTER_DEVICE void join_splits(T* out, const AttentionShared<Config>& shared, int rank) {
  using Sizes = AttentionSizes<Config>;
  constexpr int owned = joined_elements<Config>(blocks);
  for (int i = threadIdx.x; i < owned && rank * owned + i < Sizes::elements; i += Sizes::threads) {
    const int element = rank * owned + i, h = Sizes::elements + element / Sizes::width;
    float largest = shared.partials[0][h];
#pragma unroll
    for (int s = 1; s < Sizes::splits; ++s) largest = math::maximum(largest, shared.partials[s][h]);
    float total = 0.0f, weights = 0.0f;
#pragma unroll
    for (int s = 0; s < Sizes::splits; ++s) {
      const float scale = attention_weight(shared.partials[s][h], largest);
      weights = math::fma(scale, shared.partials[s][h + Sizes::tile], weights);
      total = math::fma(scale, shared.partials[s][i], total);
    }
    store(out + element, attention_result(total, weights, Config::kEmptyZero));
  }
}

// The inputs of a kernel. Sequences have `sequence_tokens` tokens each. `first` and `last` give a
// token's row numbers: first(token).
template <typename Config, typename T>
struct AttentionInputs {
  const T* q;
  long long q_stride;
  AttentionRows<T> keys, values;
  typename Config::First first;
  typename Config::Last last;
  typename Config::Mask mask;
  long long sequence_tokens;
};

// How a kernel was launched.
struct InClusters {
  static SINTER_DEVICE constexpr int blocks(int splits) { return splits; }  // that share them
};
struct WithoutClusters {
  static SINTER_DEVICE constexpr int blocks(int) { return 1; }
};

// Which rows of a range a token sees: all, or those that a cache of `rows` has.
struct AllRows {
  template <typename Config>
  static SINTER_DEVICE AttentionRange seen(int first, int last) {
    return visible_keys<Config>(first, last);
  }
};
struct RowsOfCache {
  long long rows;
  template <typename Config>
  SINTER_DEVICE AttentionRange seen(int first, int last) const {
    return visible_keys<Config>(first, last, rows);
  }
};

// Blocks: [token][tile][split], where the splits of a token's tile are a cluster, or [token][tile]
// without clusters. A block's threads: `lanes` lanes for each stream.
//
// start() reads `first`, `last` and a stream's first keys, run() the rest. A kernel that may read
// the caches before it waits, all but the rows that are being appended, calls start_early()
// instead; the other rows are read in run(). The wait comes between the two.
template <typename Config, typename T, typename Launched, typename Rows = AllRows>
class DecodeAttention : Rows {
  using Sizes = AttentionSizes<Config>;
  static constexpr int blocks = Launched::blocks(Sizes::splits);
  static constexpr int tile = Sizes::tile, all_tiles = Config::kKvHeads * Sizes::tiles;

 public:
  using Inputs = AttentionInputs<Config, T>;

  SINTER_DEVICE DecodeAttention(const Inputs& in, AttentionShared<Config>& shared, Rows rows = {})
      : Rows(rows), in_(in), shared_(shared) {
    const int rest = blockIdx.x / blocks % all_tiles, kv_head = rest / Sizes::tiles;
    rank_ = blockIdx.x % blocks;
    token_ = blockIdx.x / (blocks * all_tiles);
    head0_ = kv_head * Sizes::group + rest % Sizes::tiles * tile;
    const long long sequence = Config::kSequences ? token_ / in.sequence_tokens : 0;
    cache_ = {in.keys.row0(sequence, kv_head), in.keys.row_stride,
              in.values.row0(sequence, kv_head), in.values.row_stride};
    mask_ = {in.mask, sequence, token_ - sequence * in.sequence_tokens, head0_};
    if constexpr (blocks > 1) barrier_cluster_arrive_relaxed();
  }

  SINTER_DEVICE void start() { begin(rank_); }
  // `tokens` of the call: their rows are being appended. The lanes of a warp share the tokens, so
  // that all streams of a warp read again if one has to.
  SINTER_DEVICE void start_early(int tokens) {
    start();
    if (tokens == 1) {
      again_ = stream_.first_block_has(in_.last(0));
      return;
    }
    bool found = false;
    for (int t = threadIdx.x % 32; t < tokens; t += 32)
      found |= stream_.warp_blocks_have(in_.last(t));
    again_ = __any_sync(0xFFFFFFFFu, found);
  }

  SINTER_DEVICE void run(T* out) {
    AttentionQuery<Config, T> query(in_.q + token_ * in_.q_stride + head0_ * Config::kWidth,
                                    threadIdx.x % Sizes::lanes);
    if (again_ && stream_.active()) stream_.load(cache_);
    for (int split = rank_;;) {
      AttentionSums<Config> sums;
      const bool active = stream_.active();
      if (active) stream_.attend(sums, query, mask_, cache_);
      const bool last = blocks > 1 || split + 1 == Sizes::splits;
      if (!last) begin(split + 1);  // on its way while this one is joined
      join_warp<Config>(sums, shared_, active);
      give_partial<Config, blocks>(sums, shared_, split);
      if (last) break;
      __syncthreads();
      ++split;
    }
    if constexpr (blocks > 1) {
      barrier_cluster_arrive();
      barrier_cluster_wait();
    } else {
      __syncthreads();
    }
    join_splits<Config, blocks>(out + (token_ * Config::kHeads + head0_) * Config::kValueWidth,
                                shared_, rank_);
  }

 private:
  SINTER_DEVICE void begin(int split) {
    const AttentionRange range = Rows::template seen<Config>(in_.first(token_), in_.last(token_));
    const KeyNumbers<Config> numbers(range);
    stream_ = AttentionStream<Config, T>(
        numbers, attention_split(numbers.of_all(range), Sizes::splits, split));
    if (stream_.active()) stream_.load(cache_);
  }

  Inputs in_;
  AttentionShared<Config>& shared_;
  CacheRows<T> cache_;
  TokenMask<Config> mask_;
  AttentionStream<Config, T> stream_;
  int rank_, head0_;
  long long token_;
  bool again_ = false;  // the first block was read before one of its rows was written
};

}  // namespace sinter
