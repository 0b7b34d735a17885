// A block of float_attention: which tokens and keys it has, and its queries in shared memory.
#pragma once

#include "kernels/common/attention_operands.cuh"
#include "kernels/float_attention/layout.h"
#include "kernels/tile/epilogue/ports.cuh"

namespace sinter {

// The operands of a launch: keys and values, the row numbers of all tokens, the mask, and how many
// sequences there are, each of `tokens` tokens and with `cache_rows` keys.
template <typename Config>
struct FloatAttentionOperands {
  AttentionRows<float> keys, values;
  typename Config::First first;
  typename Config::Last last;
  typename Config::Mask mask;
  long long sequences, tokens, cache_rows;
};

// The keys low .. end - 1; none if end <= low. With a sink also the sink's keys if low > 0
// (AttentionRange).
struct KeyRange {
  int low, end;

  template <typename Config>
  SINTER_DEVICE bool has(int key) const {
    return (key >= low && key < end) || is_of_sink<Config>(key, low);
  }
};

// Four floats at a multiple of four.
SINTER_DEVICE void load_quad(float (&out)[4], const float* p) {
  const uint4 words = *reinterpret_cast<const uint4*>(p);
  out[0] = math::bits_float(words.x);
  out[1] = math::bits_float(words.y);
  out[2] = math::bits_float(words.z);
  out[3] = math::bits_float(words.w);
}
SINTER_DEVICE void store_quad(float* p, const float* in) {
  *reinterpret_cast<uint4*>(p) = make_uint4(math::float_bits(in[0]), math::float_bits(in[1]),
                                            math::float_bits(in[2]), math::float_bits(in[3]));
}

template <typename Config>
class FloatAttentionBlock {
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  SINTER_DEVICE FloatAttentionBlock(const FloatAttentionOperands<Config>& in, float* shared)
      : in_(in), shared_(shared), head_(static_cast<int>(blockIdx.x % Config::kHeads)) {
    const int tiles = static_cast<int>((in.tokens + Config::kRows - 1) / Config::kRows);
    // From the last tile of tokens on: where attention is causal, it sees the most keys.
    const int tile =
        static_cast<int>(in.sequences) * tiles - 1 - static_cast<int>(blockIdx.x / Config::kHeads);
    is_there_ = tile >= 0;
    sequence_ = is_there_ ? tile / tiles : 0;
    token0_ = (tile - sequence_ * tiles) * Config::kRows;
  }

  SINTER_DEVICE bool is_there() const { return is_there_; }
  SINTER_DEVICE bool is_there(int row) const { return token0_ + row < in_.tokens; }

  SINTER_DEVICE KeyRange seen_by(int row) const {
    const long long token = sequence_ * in_.tokens + token_of(row);
    const AttentionRange range =
        visible_keys<Config>(in_.first(token), in_.last(token), in_.cache_rows);
    return {static_cast<int>(range.low), static_cast<int>(range.low + range.count)};
  }
  // The keys from the lowest to the highest that a row sees. All lanes of a warp find it together.
  SINTER_DEVICE KeyRange seen_by_all() const {
    KeyRange all = {0x7fffffff, 0};
#pragma unroll
    for (int row = 0; row < Config::kRows; row += 32) {
      const KeyRange seen = seen_by(row + static_cast<int>(threadIdx.x) % 32);
      if (seen.low >= seen.end) continue;
      if (seen.low < all.low) all.low = seen.low;
      if (seen.end > all.end) all.end = seen.end;
    }
#pragma unroll
    for (int stride = 1; stride < 32; stride *= 2) {
      const int low = __shfl_xor_sync(kAll, all.low, stride);
      const int end = __shfl_xor_sync(kAll, all.end, stride);
      if (low < all.low) all.low = low;
      if (end > all.end) all.end = end;
    }
    if (kSinkOf<Config> != 0 && all.end == 0) all.low = 0;  // no row sees the sink
    return all;
  }
  SINTER_DEVICE auto mask_of(int row) const {
    return in_.mask.row(sequence_, head_, token_of(row));
  }

  // Row 0 of the block's head of keys or values.
  SINTER_DEVICE const float* keys_from() const { return in_.keys.row0(sequence_, kv_head()); }
  SINTER_DEVICE const float* values_from() const { return in_.values.row0(sequence_, kv_head()); }
  SINTER_DEVICE long long key_stride() const { return in_.keys.row_stride; }
  SINTER_DEVICE long long value_stride() const { return in_.values.row_stride; }

  SINTER_DEVICE float* queries() const { return shared_; }
  SINTER_DEVICE float* buffer(int number) const {
    return shared_ + Config::kRows * query_stride(Config::kWidth) + number * kBufferFloats;
  }
  // [warp][key of a tile][row of the warp].
  SINTER_DEVICE float* weights() const { return buffer(2); }
  // The keys that a row sees.
  SINTER_DEVICE KeyRange* seen() const {
    return reinterpret_cast<KeyRange*>(weights() + Config::kRows * kFloatTileKeys);
  }

  template <typename Query>
  SINTER_DEVICE void load_queries(const Query& q) const {
    constexpr int width = Config::kWidth, chunks = (width + 7) / 8;
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Config::kRows * chunks; i += Config::kThreads) {
      const int row = i / chunks, first = i % chunks * 8;
      float values[8] = {};
      read_port<width % 8 == 0>(values, q, element(token_of(row), width) + first, width - first);
      float* to = queries() + row * query_stride(width) + first;
      store_quad(to, values);
      if (first + 4 < width) store_quad(to + 4, values + 4);
    }
  }
  // Gives the result 8 elements of a row's head, from element `first` on, as far as there are.
  template <typename Result>
  SINTER_DEVICE void store(const Result& out, int row, int first, const float (&values)[8]) const {
    constexpr int width = Config::kValueWidth;
    if (!is_there(row) || first >= width) return;
    const long long at = element(token0_ + row, width) + first;
    if constexpr (width % 8 == 0) {
      out.set_chunk(at, values);
    } else {
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (first + e < width) out.set(at + e, values[e]);
    }
  }

 private:
  // The token of a row in its sequence; rows after the last token have the last token.
  SINTER_DEVICE long long token_of(int row) const {
    return token0_ + row < in_.tokens ? token0_ + row : in_.tokens - 1;
  }
  SINTER_DEVICE int kv_head() const { return head_ / (Config::kHeads / Config::kKvHeads); }
  // The first element of a token's head in a tensor of `width` elements a head.
  SINTER_DEVICE long long element(long long token, int width) const {
    return ((sequence_ * in_.tokens + token) * Config::kHeads + head_) * width;
  }

  const FloatAttentionOperands<Config>& in_;
  float* shared_;
  int head_;
  bool is_there_;
  int sequence_, token0_;
};

}  // namespace sinter
