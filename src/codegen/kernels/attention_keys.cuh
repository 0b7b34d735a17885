// What one block of threads of attention_few does with the keys of its split: streams, each with
// sums of its own.
#pragma once

#include "sinter/attention_rows.cuh"
#include "sinter/lane_sums.cuh"

namespace sinter {

// The lane's chunks of the keys row .. row + kAttentionBlock - 1; of keys behind the last one that
// one's. `chunk`: the lane's of key 0.
template <bool aligned, int width, typename T>
SINTER_DEVICE void load_block(Packed<T> (&out)[kAttentionBlock], const T* chunk, long long stride,
                              unsigned row, unsigned end, int lane) {
#ifdef __CUDACC_RTC__
  asm("" : "+l"(chunk));  // one sum a key: taken apart, it would be added up again for each
#endif
#pragma unroll
  for (unsigned u = 0; u < kAttentionBlock; ++u) {
    const unsigned key = row + u < end - 1 ? row + u : end - 1;
    load_chunk_of<aligned, width>(out[u], chunk + key * stride, lane);
  }
}

// A query's chunk; zeros in the lanes behind its end.
template <typename Config, typename T>
struct AttentionQuery {
  Packed<T> chunk[Config::kTile];

  SINTER_DEVICE AttentionQuery(const T* q, int lane) {
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      load_chunk_of<Config::kAligned, Config::kWidth>(
          chunk[h], chunk_of<Config::kWidth>(q + h * Config::kWidth, lane), lane);
      if (8 * lane >= Config::kWidth) chunk[h] = {};
    }
  }
  SINTER_DEVICE float element(int h, int e) { return chunk[h][e]; }
  // The chunks are widened for each block anew, for want of registers; the compiler would do it
  // once.
  SINTER_DEVICE void forget() {
#ifdef __CUDACC_RTC__
    if constexpr (sizeof(T) == 2) {
#pragma unroll
      for (int h = 0; h < Config::kTile; ++h)
        for (unsigned& word : chunk[h].word) asm volatile("" : "+r"(word));
    }
#endif
  }
};

// What a stream has summed of its tile's heads: lane c holds the elements 8c .. 8c + 7.
template <int tile>
struct AttentionSums {
  float value[tile][8], m[tile], l[tile];

  SINTER_DEVICE AttentionSums() {
#pragma unroll
    for (int h = 0; h < tile; ++h) {
      m[h] = -math::infinity();
      l[h] = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) value[h][e] = 0.0f;
    }
  }
};

// A block's scores: after the sum over lanes, kept_values of them a lane, -inf where no key is
// left.
template <typename Config, typename T>
SINTER_DEVICE void attention_scores(float (&score)[Config::kTile][kAttentionBlock],
                                    AttentionQuery<Config, T>& query,
                                    const Packed<T> (&keys)[kAttentionBlock], unsigned row,
                                    unsigned end, int lane) {
  constexpr int block = kAttentionBlock, lanes = AttentionSizes<Config>::lanes;
  query.forget();
#pragma unroll
  for (int u = 0; u < block; ++u) {
    float key[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) key[e] = keys[u][e];
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      score[h][u] = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) score[h][u] = math::fma(query.element(h, e), key[e], score[h][u]);
      if (8 * lane >= Config::kWidth) score[h][u] = 0.0f;
    }
  }
  row += kept_value<1, lanes, block>(lane);
#pragma unroll
  for (int h = 0; h < Config::kTile; ++h) {
    sum_lanes<1, lanes, block>(score[h], lane);
#pragma unroll
    for (int i = 0; i < kept_values<1, lanes, block>(); ++i) {
      const float scaled = attention_score(score[h][i], Config::kScale, Config::kSoftcap);
      score[h][i] = row + i < end ? scaled : -math::infinity();
    }
  }
}

// m grows to the largest score; scores become weights.
template <typename Config>
SINTER_DEVICE void attention_weights(float (&score)[kAttentionBlock],
                                     AttentionSums<Config::kTile>& sums, int h) {
  constexpr unsigned all = 0xffffffffu;
  constexpr int lanes = AttentionSizes<Config>::lanes,
                kept = kept_values<1, lanes, kAttentionBlock>();
  float largest = score[0];
#pragma unroll
  for (int i = 1; i < kept; ++i) largest = math::maximum(largest, score[i]);
#pragma unroll
  for (int stride = 1; stride < lanes && stride < kAttentionBlock; stride *= 2)
    largest = math::maximum(largest, __shfl_xor_sync(all, largest, stride));
  largest = math::maximum(sums.m[h], largest);
  // Where m stays, the scale is 1 (or sums of weight 0 are scaled): nothing changes.
  if (largest != sums.m[h]) {
    const float scale = attention_weight(sums.m[h], largest);
    sums.m[h] = largest;
    sums.l[h] = math::mul(sums.l[h], scale);
#pragma unroll
    for (int e = 0; e < 8; ++e) sums.value[h][e] = math::mul(sums.value[h][e], scale);
  }
#pragma unroll
  for (int i = 0; i < kept; ++i) score[i] = attention_weight(score[i], largest);
}

// Adds a block's values, weighted by its scores. Of keys that are not there both factors are zeros,
// of a product -0: adding it changes nothing.
template <typename Config, typename T>
SINTER_DEVICE void add_block(AttentionSums<Config::kTile>& sums,
                             float (&score)[Config::kTile][kAttentionBlock],
                             Packed<T> (&values)[kAttentionBlock], unsigned row, unsigned end) {
  constexpr unsigned all = 0xffffffffu;
  constexpr int block = kAttentionBlock, lanes = AttentionSizes<Config>::lanes;
  constexpr int kept = kept_values<1, lanes, block>();
#pragma unroll
  for (int h = 0; h < Config::kTile; ++h) attention_weights<Config>(score[h], sums, h);
  if (row + block > end) {
#pragma unroll
    for (unsigned u = 0; u < block; ++u)
      if (row + u >= end) fill_minus_zeros(values[u]);
  }
#pragma unroll
  for (int u = 0; u < block; ++u) {
    // The lane that keeps the weight of key u, see kept_value.
    constexpr int sources[block] = {0, lanes > 2 ? 2 : 0, lanes > 1 ? 1 : 0,
                                    lanes > 2   ? 3
                                    : lanes > 1 ? 1
                                                : 0};
    float value[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) value[e] = values[u][e];
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      float p = score[h][u % kept];
      if constexpr (lanes > 1) p = __shfl_sync(all, p, sources[u], lanes);
      sums.l[h] = math::add(sums.l[h], p);
#pragma unroll
      for (int e = 0; e < 8; ++e) sums.value[h][e] = math::fma(p, value[e], sums.value[h][e]);
    }
  }
}

// The keys of a split that a thread's stream has. The next block is on its way while one is computed
// with: it takes the registers of the keys as soon as the scores are known.
template <typename Config, typename T>
class AttentionStream {
  using Sizes = AttentionSizes<Config>;
  static constexpr unsigned block = kAttentionBlock, step = block * Sizes::streams;

 public:
  SINTER_DEVICE AttentionStream() {}
  SINTER_DEVICE explicit AttentionStream(AttentionRange part) {
    lane_ = threadIdx.x % Sizes::lanes;
    end_ = static_cast<unsigned>(part.low + part.count);
    row_ = static_cast<unsigned>(part.low) + block * (threadIdx.x / Sizes::lanes);
    // A warp goes round as often as its first stream does: its lanes exchange sums.
    first_ = row_ - block * (threadIdx.x % 32 / Sizes::lanes);
  }

  // The warp has keys.
  SINTER_DEVICE bool active() const { return first_ < end_; }
  SINTER_DEVICE bool first_block_has(int row) const {
    return static_cast<unsigned>(row) - row_ < block;
  }

  // Lets the first block come.
  SINTER_DEVICE void load(const CacheRows<T>& cache) {
    load_keys(cache, row_);
    load_values(cache, row_);
  }
  // Adds all blocks; the first has been loaded.
  SINTER_DEVICE void attend(AttentionSums<Config::kTile>& sums, AttentionQuery<Config, T>& query,
                            const CacheRows<T>& cache) {
    float score[Config::kTile][block];
    for (; first_ + step < end_; first_ += step, row_ += step) {
      attention_scores<Config>(score, query, keys_, row_, end_, lane_);
      load_keys(cache, row_ + step);
      add_block<Config>(sums, score, values_, row_, end_);
      load_values(cache, row_ + step);
    }
    attention_scores<Config>(score, query, keys_, row_, end_, lane_);
    add_block<Config>(sums, score, values_, row_, end_);
  }

 private:
  SINTER_DEVICE void load_keys(const CacheRows<T>& cache, unsigned row) {
    load_block<Config::kAligned, Config::kWidth>(keys_, chunk_of<Config::kWidth>(cache.keys, lane_),
                                                 cache.keys_stride, row, end_, lane_);
  }
  SINTER_DEVICE void load_values(const CacheRows<T>& cache, unsigned row) {
    load_block<Config::kAligned, Config::kValueWidth>(
        values_, chunk_of<Config::kValueWidth>(cache.values, lane_), cache.values_stride, row, end_,
        lane_);
  }

  Packed<T> keys_[block], values_[block];
  unsigned row_, first_, end_;  // of the next block, of the warp's, behind the last
  int lane_;
};

}  // namespace sinter
