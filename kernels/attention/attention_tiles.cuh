// What both forms of tiled_attention share: which keys the rows of a block see, the tiles in shared
// memory, the softmax of a tile, and the result.
#pragma once

#include "kernels/attention/layout.h"
#include "kernels/attention/order.h"
#include "kernels/common/async_copies.cuh"
#include "kernels/common/vector.cuh"

namespace sinter {

template <typename Config>
struct TiledSizes {
  static constexpr int rows = Config::kRows;
  static constexpr int keys = attention_key_tile(Config::kWidth, Config::kValueWidth);
  static constexpr int width = attention_padded(Config::kWidth);
  static constexpr int value_width = attention_padded(Config::kValueWidth);
  // Queries, and later the result, in the same place.
  static constexpr int query_bytes =
      attention_tile_bytes(rows, width > value_width ? width : value_width);
  static constexpr int key_bytes = attention_tile_bytes(keys, width);
  static constexpr int value_bytes = attention_tile_bytes(keys, value_width);
};

// The first elements and the row strides of the caches, the row numbers, and how many there are.
template <typename T>
struct AttentionOperands {
  const T* keys;
  long long keys_stride;
  const T* values;
  long long values_stride;
  const int *first, *last;
  long long tokens, cache_rows;
};

// Keys that rows see: from `low` to `high`, none if high < low.
struct SeenKeys {
  int low, high;
};

// The keys that some row of a block sees, and those that all its rows see.
struct SeenByRows {
  SeenKeys some, all;

  SINTER_DEVICE void add(const SeenByRows& other) {
    if (other.some.low < some.low) some.low = other.some.low;
    if (other.some.high > some.high) some.high = other.some.high;
    if (other.all.low > all.low) all.low = other.all.low;
    if (other.all.high < all.high) all.high = other.all.high;
  }
};

// A block's place, and what its rows see. Its constructor has a barrier.
template <typename Config>
class AttentionBlock {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  static constexpr int kMost = 0x7fffffff;

 public:
  SINTER_DEVICE AttentionBlock(const AttentionOperands<T>& in, int tile, int head,
                               unsigned char* shared)
      : in_(in), shared_(shared), token0_(static_cast<long long>(tile) * Sizes::rows), head_(head) {
    in_.keys += head / (Config::kHeads / Config::kKvHeads) * Config::kWidth;
    in_.values += head / (Config::kHeads / Config::kKvHeads) * Config::kValueWidth;
    find_seen_keys();
  }

  // The first tile of keys, and the one after the last; equal if no row sees a key.
  SINTER_DEVICE int first_tile() const {
    return seen_.some.high < seen_.some.low ? 0 : seen_.some.low / Sizes::keys;
  }
  SINTER_DEVICE int end_tile() const {
    return seen_.some.high < seen_.some.low ? 0 : seen_.some.high / Sizes::keys + 1;
  }
  // Some row does not see some key of the tile.
  SINTER_DEVICE bool is_masked(int tile) const {
    const int begin = tile * Sizes::keys;
    return begin < seen_.all.low || begin + (Sizes::keys - 1) > seen_.all.high;
  }
  SINTER_DEVICE SeenKeys seen_by(int row) const { return of_rows()[row]; }

  SINTER_DEVICE unsigned char* queries() const { return shared_; }
  SINTER_DEVICE unsigned char* keys(int stage) const {
    return shared_ + Sizes::query_bytes + stage * Sizes::key_bytes;
  }
  SINTER_DEVICE unsigned char* values(int stage) const {
    return keys(Config::kStages) + stage * Sizes::value_bytes;
  }

  // Computes the block's queries, by all threads. A barrier must follow.
  template <typename Query>
  SINTER_DEVICE void take_queries(const Query& q) const {
    constexpr int chunks = Sizes::width / 8;
    for (int i = static_cast<int>(threadIdx.x); i < Sizes::rows * chunks; i += Config::kThreads) {
      const int row = i / chunks, chunk = i % chunks;
      const long long at = element(row, Config::kWidth) + 8 * chunk;
      float values[8] = {};
      if (token0_ + row < in_.tokens) {
        if constexpr (Config::kWidth % 8 == 0) {
          if (8 * chunk < Config::kWidth) q.chunk(values, at);
        } else {
#pragma unroll
          for (int e = 0; e < 8; ++e)
            if (8 * chunk + e < Config::kWidth) values[e] = q(at + e);
        }
      }
      place(queries(), Sizes::rows, Sizes::width, row, chunk) =
          narrow(static_cast<const T*>(nullptr), values);
    }
  }

  // Starts the copies of a tile of keys, or of values, by `threads` threads of which this is number
  // `thread`; zeros where no row of the block sees the key.
  SINTER_DEVICE void load_keys(int tile, int stage, int thread, int threads) const {
    load_tile<Config::kWidth>(keys(stage), in_.keys, in_.keys_stride, tile, thread, threads);
  }
  SINTER_DEVICE void load_values(int tile, int stage, int thread, int threads) const {
    load_tile<Config::kValueWidth>(values(stage), in_.values, in_.values_stride, tile, thread,
                                   threads);
  }

  // Gives the result 16 rows of a warp, from `row0` on: `sums` as a product of tensor cores has
  // them, the queries of these rows are no longer needed.
  template <typename Result>
  SINTER_DEVICE void give(const float (&sums)[Sizes::value_width / 2], int row0,
                          const Result& out) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, q = lane % 4;
#pragma unroll
    for (int chunk = 0; chunk < Sizes::value_width / 8; ++chunk)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        uint4& words =
            place(queries(), Sizes::rows, Sizes::value_width, row0 + lane / 4 + 8 * half, chunk);
        reinterpret_cast<unsigned*>(&words)[q] =
            pack(static_cast<const T*>(nullptr), sums[4 * chunk + 2 * half],
                 sums[4 * chunk + 2 * half + 1]);
      }
    __syncwarp();
    constexpr int chunks = (Config::kValueWidth + 7) / 8;
    for (int i = lane; i < 16 * chunks; i += 32) {
      const int row = row0 + i / chunks, chunk = i % chunks;
      if (token0_ + row >= in_.tokens) continue;
      const long long at = element(row, Config::kValueWidth) + 8 * chunk;
      float values[8];
      widen(values, static_cast<const T*>(nullptr),
            place(queries(), Sizes::rows, Sizes::value_width, row, chunk));
      if constexpr (Config::kValueWidth % 8 == 0) {
        out.set_chunk(at, values);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (8 * chunk + e < Config::kValueWidth) out.set(at + e, values[e]);
      }
    }
  }

 private:
  SINTER_DEVICE static SeenKeys* of_rows() {
    __shared__ SeenKeys rows[Sizes::rows];
    return rows;
  }
  SINTER_DEVICE void find_seen_keys() {
    constexpr int warps = Sizes::rows / 32;
    __shared__ SeenByRows of_warps[warps];
    const int row = static_cast<int>(threadIdx.x);
    if (row < Sizes::rows) {
      SeenByRows seen = {{kMost, -1}, {0, kMost}};  // of a row that is not there
      SeenKeys own = {0, -1};
      if (token0_ + row < in_.tokens) {
        const AttentionRange range = rows_of_cache(
            attention_range(in_.first[token0_ + row], in_.last[token0_ + row], Config::kWindow),
            in_.cache_rows);
        seen.all = {kMost, -1};
        if (range.count > 0) {
          own = {static_cast<int>(range.low), static_cast<int>(range.low + range.count - 1)};
          seen = {own, own};
        }
      }
      of_rows()[row] = own;
#pragma unroll
      for (int stride = 1; stride < 32; stride *= 2) {
        const auto other = [&](int x) { return __shfl_xor_sync(0xffffffffu, x, stride); };
        seen.add({{other(seen.some.low), other(seen.some.high)},
                  {other(seen.all.low), other(seen.all.high)}});
      }
      if (row % 32 == 0) of_warps[row / 32] = seen;
    }
    __syncthreads();
    seen_ = of_warps[0];
    for (int warp = 1; warp < warps; ++warp) seen_.add(of_warps[warp]);
  }

  // The first element of a row's head in a tensor of so many elements a head.
  SINTER_DEVICE long long element(int row, int width) const {
    return ((token0_ + row) * Config::kHeads + head_) * width;
  }
  SINTER_DEVICE static uint4& place(unsigned char* tile, int rows, int padded, int row, int chunk) {
    return *reinterpret_cast<uint4*>(tile + attention_offset(rows, padded, row, chunk));
  }

  template <int width>
  SINTER_DEVICE void load_tile(unsigned char* to, const T* from, long long stride, int tile,
                               int thread, int threads) const {
    constexpr int padded = attention_padded(width), chunks = padded / 8;
    for (int i = thread; i < Sizes::keys * chunks; i += threads) {
      const int row = i / chunks, chunk = i % chunks, key = tile * Sizes::keys + row;
      const bool seen = key >= seen_.some.low && key <= seen_.some.high;
      uint4& out = place(to, Sizes::keys, padded, row, chunk);
      if constexpr (Config::kAligned && width % 8 == 0) {
        const bool present = seen && 8 * chunk < width;
        copy_async(&out, present ? from + key * stride + 8 * chunk : from, present);
      } else {
        unsigned words[4] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (seen && 8 * chunk + e < width)
            words[e / 2] |= static_cast<unsigned>(from[key * stride + 8 * chunk + e].bits)
                            << 16 * (e % 2);
        out = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }

  AttentionOperands<T> in_;
  unsigned char* shared_;
  long long token0_;
  int head_;
  SeenByRows seen_;
};

// The softmax of a lane's two rows, row0 + lane / 4 and 8 more.
template <typename Config>
class AttentionSoftmax {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  SINTER_DEVICE AttentionSoftmax(const AttentionBlock<Config>& block, int row0) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      seen_[half] = block.seen_by(row0 + static_cast<int>(threadIdx.x) % 32 / 4 + 8 * half);
      largest_[half] = -math::infinity();
      weights_[half] = 0.0f;
    }
  }

  // Turns a tile's dot products into weights, fragments of an operand A: words[4 s ..] those of 16
  // keys. What the sums of a row are to be multiplied by: `scale`.
  template <bool masked>
  SINTER_DEVICE void weigh(float (&dots)[Sizes::keys / 2], unsigned (&words)[Sizes::keys / 4],
                           float (&scale)[2], int tile) {
    const int key0 = tile * Sizes::keys + 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float largest = -math::infinity();
#pragma unroll
      for (int i = 0; i < Sizes::keys / 4; ++i) {
        float& x = dots[i / 2 * 4 + 2 * half + i % 2];
        x = attention_logit(x, Config::kScale, Config::kSoftcap);
        if (masked) {
          const int key = key0 + i / 2 * 8 + i % 2;
          if (key < seen_[half].low || key > seen_[half].high) x = -math::infinity();
        }
        largest = math::maximum(largest, x);
      }
      largest = math::maximum(largest, __shfl_xor_sync(kAll, largest, 1));
      largest = math::maximum(largest, __shfl_xor_sync(kAll, largest, 2));
      largest = math::maximum(largest, largest_[half]);
      const float base = attention_base(largest);
      scale[half] = attention_exp2(math::mul(math::sub(largest_[half], base), Config::kFactor));
      largest_[half] = largest;
      const float shift = -math::mul(base, Config::kFactor);
      float sum = math::mul(weights_[half], scale[half]);
#pragma unroll
      for (int i = 0; i < Sizes::keys / 4; i += 2) {
        const T* type = nullptr;
        float p[2];
#pragma unroll
        for (int e = 0; e < 2; ++e)
          p[e] = attention_exp2(math::fma(dots[i / 2 * 4 + 2 * half + e], Config::kFactor, shift));
        const unsigned word = pack(type, p[0], p[1]);
        sum = math::add(sum, low_half(type, word & 0xffffu));
        sum = math::add(sum, low_half(type, word >> 16));
        words[i + half] = word;
      }
      weights_[half] = sum;
    }
  }
  SINTER_DEVICE void weigh(float (&dots)[Sizes::keys / 2], unsigned (&words)[Sizes::keys / 4],
                           float (&scale)[2], int tile, bool masked) {
    if (masked)
      weigh<true>(dots, words, scale, tile);
    else
      weigh<false>(dots, words, scale, tile);
  }

  // Divides the weighted sums by the sums of weights.
  SINTER_DEVICE void finish(float (&sums)[Sizes::value_width / 2]) const {
    float by[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float weights = math::add(weights_[half], __shfl_xor_sync(kAll, weights_[half], 1));
      weights = math::add(weights, __shfl_xor_sync(kAll, weights, 2));
      by[half] = math::div(1.0f, weights);
    }
    scale_rows<Sizes::value_width / 2>(sums, by);
  }

  template <int count>
  static SINTER_DEVICE void scale_rows(float (&sums)[count], const float (&by)[2]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] = math::mul(sums[i], by[i / 2 % 2]);
  }

 private:
  SeenKeys seen_[2];
  float largest_[2], weights_[2];
};

}  // namespace sinter
