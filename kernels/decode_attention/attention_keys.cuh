// The work of a block of decode_attention on the keys of its split: streams with their own sums.
#pragma once

#include "kernels/common/lane_sums.cuh"
#include "kernels/decode_attention/attention_rows.cuh"
#include "kernels/isa/opaque.cuh"

namespace sinter {

// The lane's chunks of the keys key0 .. key0 + kAttentionBlock - 1; keys after the last one repeat
// the last one's. `chunk`: the lane's of row 0.
template <int width, typename Config, typename T>
SINTER_DEVICE void load_block(Packed<T> (&out)[kAttentionBlock], const T* chunk, long long stride,
                              const KeyNumbers<Config>& numbers, unsigned key0, unsigned end,
                              int lane) {
  make_opaque(chunk);  // one sum a key: taken apart, it would be added up again for each
#pragma unroll
  for (unsigned u = 0; u < kAttentionBlock; ++u) {
    const unsigned key = key0 + u < end - 1 ? key0 + u : end - 1;
    load_chunk_of<Config::kAligned, width>(out[u], chunk + numbers.row(key) * stride, lane);
  }
}

// A query's chunk; zeros in the lanes after its end.
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
  // Where threads have but 64 registers, which is with one head, its chunk is widened for each
  // block anew; the compiler would do it once.
  SINTER_DEVICE void forget() {
    if constexpr (sizeof(T) == 2 && Config::kTile == 1) {
#pragma unroll
      for (unsigned& word : chunk[0].word) make_opaque(word);
    }
  }
};

// A tile's scores with a block of keys, head by head. They are summed over lanes together, so that
// a lane keeps but some of them: of `heads` heads from head(lane) on, of each `keys` from key(lane)
// on.
template <typename Config>
struct AttentionScores {
  static constexpr int tile = Config::kTile, lanes = AttentionSizes<Config>::lanes;
  static constexpr int block = kAttentionBlock, all = tile * block;
  static constexpr int kept = kept_values<1, lanes, all>();
  static constexpr int keys = kept < block ? kept : block, heads = kept / keys;
  static_assert((tile & (tile - 1)) == 0, "heads are halved");

  float value[all];

  SINTER_DEVICE void sum(int lane) { sum_lanes<1, lanes, all>(value, lane); }
  static SINTER_DEVICE int head(int lane) { return kept_value<1, lanes, all>(lane) / block; }
  static SINTER_DEVICE int key(int lane) { return kept_value<1, lanes, all>(lane) % block; }
  // For all lanes of a stream what the one that keeps it has for head h, and a key.
  static SINTER_DEVICE float of_keeper(float own, int h, int key = 0) {
    if constexpr (lanes == 1) return own;
    return __shfl_sync(0xffffffffu, own, keeping_lane<1, lanes, all>(h * block + key), lanes);
  }
};

// A stream's sums for the heads of its tile: lane c holds the elements 8c .. 8c + 7, and m of the
// heads whose scores it keeps.
template <typename Config>
struct AttentionSums {
  float value[Config::kTile][8], l[Config::kTile], m[AttentionScores<Config>::heads];

  SINTER_DEVICE AttentionSums() {
#pragma unroll
    for (float& largest : m) largest = -math::infinity();
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      l[h] = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) value[h][e] = 0.0f;
    }
  }
};

// The mask of a token for the heads of a tile.
template <typename Config>
struct TokenMask {
  typename Config::Mask mask;
  long long sequence, token;
  int head0;

  SINTER_DEVICE float masked(float score, int head, int key) const {
    return attention_score(score, mask.row(sequence, head0 + head, token)[key]);
  }
};

// A block's scores: after the sum over lanes, -inf where no key is left. `full`: none lies after
// the last.
template <bool full, typename Config, typename T>
SINTER_DEVICE void attention_scores(AttentionScores<Config>& score,
                                    AttentionQuery<Config, T>& query, const TokenMask<Config>& mask,
                                    const Packed<T> (&keys)[kAttentionBlock],
                                    const KeyNumbers<Config>& numbers, unsigned key0, unsigned end,
                                    int lane) {
  using Scores = AttentionScores<Config>;
  query.forget();
#pragma unroll
  for (int u = 0; u < kAttentionBlock; ++u) {
    float key[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) key[e] = keys[u][e];
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      float dot = 0.0f;
#pragma unroll
      for (int e = 0; e < 8; ++e) dot = math::fma(query.element(h, e), key[e], dot);
      score.value[h * kAttentionBlock + u] = 8 * lane < Config::kWidth ? dot : 0.0f;
    }
  }
  score.sum(lane);
  key0 += Scores::key(lane);
#pragma unroll
  for (int i = 0; i < Scores::kept; ++i) {
    float scaled = attention_score(score.value[i], Config::kScale, Config::kSoftcap);
    if constexpr (Config::Mask::kIsThere) {
      const unsigned key = key0 + i % Scores::keys;
      scaled = mask.masked(scaled, Scores::head(lane) + i / Scores::keys,
                           static_cast<int>(numbers.row(key < end ? key : end - 1)));
    }
    score.value[i] = full || key0 + i % Scores::keys < end ? scaled : -math::infinity();
  }
}

// m grows to the largest score; scores become weights. All lanes of the warp call it.
template <typename Config>
SINTER_DEVICE void attention_weights(AttentionScores<Config>& score, AttentionSums<Config>& sums) {
  using Scores = AttentionScores<Config>;
  constexpr unsigned all = 0xffffffffu;
  float largest[Scores::heads];
  bool grows = false;
#pragma unroll
  for (int i = 0; i < Scores::heads; ++i) {
    float value = score.value[i * Scores::keys];
#pragma unroll
    for (int k = 1; k < Scores::keys; ++k)
      value = math::maximum(value, score.value[i * Scores::keys + k]);
#pragma unroll
    for (int stride = Scores::tile; stride < Scores::lanes && stride < Scores::all; stride *= 2)
      value = math::maximum(value, __shfl_xor_sync(all, value, stride));
    largest[i] = math::maximum(sums.m[i], value);
    grows = grows || largest[i] != sums.m[i];
  }
  // Where m stays, the scale is 1, or sums of weight 0 are scaled: nothing changes. So one branch
  // serves all heads and streams of a warp.
  if (__any_sync(all, grows)) {
    float scale[Scores::heads];
#pragma unroll
    for (int i = 0; i < Scores::heads; ++i) {
      scale[i] = attention_weight(sums.m[i], largest[i]);
      sums.m[i] = largest[i];
    }
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      const float by = Scores::of_keeper(scale[h % Scores::heads], h);
      sums.l[h] = math::mul(sums.l[h], by);
#pragma unroll
      for (int e = 0; e < 8; ++e) sums.value[h][e] = math::mul(sums.value[h][e], by);
    }
  }
#pragma unroll
  for (int i = 0; i < Scores::kept; ++i)
    score.value[i] = attention_weight(score.value[i], largest[i / Scores::keys]);
}

// Adds a block's values, weighted by its scores. Of keys that are not there both factors are zeros,
// of a product -0: adding it changes nothing.
template <bool full, typename Config, typename T>
SINTER_DEVICE void add_block(AttentionSums<Config>& sums, AttentionScores<Config>& score,
                             Packed<T> (&values)[kAttentionBlock], unsigned key, unsigned end) {
  using Scores = AttentionScores<Config>;
  constexpr int block = kAttentionBlock;
  attention_weights<Config>(score, sums);
  if (!full && key + block > end) {
#pragma unroll
    for (unsigned u = 0; u < block; ++u)
      if (key + u >= end) fill_minus_zeros(values[u]);
  }
#pragma unroll
  for (int u = 0; u < block; ++u) {
    float value[8];
#pragma unroll
    for (int e = 0; e < 8; ++e) value[e] = values[u][e];
#pragma unroll
    for (int h = 0; h < Config::kTile; ++h) {
      const float p = Scores::of_keeper(score.value[(h * block + u) % Scores::kept], h, u);
      sums.l[h] = math::add(sums.l[h], p);
#pragma unroll
      for (int e = 0; e < 8; ++e) sums.value[h][e] = math::fma(p, value[e], sums.value[h][e]);
    }
  }
}

// The keys of a split that a thread's stream has. The next block is on its way while one is
// computed with: it takes the registers of the keys as soon as the scores are known.
template <typename Config, typename T>
class AttentionStream {
  using Sizes = AttentionSizes<Config>;
  static constexpr unsigned block = kAttentionBlock, step = block * Sizes::streams;

 public:
  SINTER_DEVICE AttentionStream() {}
  // `keys`: of the split, by their numbers.
  SINTER_DEVICE AttentionStream(const KeyNumbers<Config>& numbers, AttentionRange keys)
      : numbers_(numbers) {
    lane_ = threadIdx.x % Sizes::lanes;
    end_ = static_cast<unsigned>(keys.low + keys.count);
    key_ = static_cast<unsigned>(keys.low) + block * (threadIdx.x / Sizes::lanes);
    // A warp goes round as often as its first stream does: its lanes exchange sums.
    first_ = key_ - block * (threadIdx.x % 32 / Sizes::lanes);
  }

  // The warp has keys.
  SINTER_DEVICE bool active() const { return first_ < end_; }
  SINTER_DEVICE bool first_block_has(int row) const { return has_row(row, key_, block); }
  // One of the first blocks of the warp's streams has the row.
  SINTER_DEVICE bool warp_blocks_have(int row) const {
    return has_row(row, first_, block * attention_neighbours(Sizes::lanes));
  }

  // Lets the first block come.
  SINTER_DEVICE void load(const CacheRows<T>& cache) {
    load_keys(cache, key_);
    load_values(cache, key_);
  }
  // Adds all blocks; the first has been loaded. A block before the last round is full, because a
  // later round has keys too.
  SINTER_DEVICE void attend(AttentionSums<Config>& sums, AttentionQuery<Config, T>& query,
                            const TokenMask<Config>& mask, const CacheRows<T>& cache) {
    AttentionScores<Config> score;
    for (; first_ + step < end_; first_ += step, key_ += step) {
      attention_scores<true>(score, query, mask, keys_, numbers_, key_, end_, lane_);
      load_keys(cache, key_ + step);
      add_block<true>(sums, score, values_, key_, end_);
      load_values(cache, key_ + step);
    }
    attention_scores<false>(score, query, mask, keys_, numbers_, key_, end_, lane_);
    add_block<false>(sums, score, values_, key_, end_);
  }

 private:
  // The row may be one of the `count` keys from `key` on; true of each that is.
  SINTER_DEVICE bool has_row(int row, unsigned key, unsigned count) const {
    const unsigned number = static_cast<unsigned>(row);
    if (number - key < count) return true;
    return kSinkOf<Config> != 0 && numbers_.of_sink(number) - key < count;
  }
  SINTER_DEVICE void load_keys(const CacheRows<T>& cache, unsigned key) {
    load_block<Config::kWidth>(keys_, chunk_of<Config::kWidth>(cache.keys, lane_),
                               cache.keys_stride, numbers_, key, end_, lane_);
  }
  SINTER_DEVICE void load_values(const CacheRows<T>& cache, unsigned key) {
    load_block<Config::kValueWidth>(values_, chunk_of<Config::kValueWidth>(cache.values, lane_),
                                    cache.values_stride, numbers_, key, end_, lane_);
  }

  KeyNumbers<Config> numbers_;
  Packed<T> keys_[block], values_[block];
  unsigned key_, first_, end_;  // of the next block, of the warp's, after the last
  int lane_;
};

}  // namespace sinter
