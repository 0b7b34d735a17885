// Shared by both forms of tiled_attention: which keys the rows of a block see, the tiles in shared
// memory, and the result.
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
  static constexpr int query_bytes = attention_tile_bytes(rows, width);
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

// Keys that a row sees: low .. low + count - 1.
struct SeenKeys {
  int low;
  unsigned count;
};

// Keys that some row of a tile of queries sees; none if high < low.
struct SeenRange {
  int low, high;
};

// Tiles of keys: from `first` on, those before `end`.
struct SeenTiles {
  int first, end;
};

// A block's place: a tile of rows of a head.
template <typename Config>
class AttentionBlock {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  static constexpr int kMost = 0x7fffffff;

 public:
  SINTER_DEVICE AttentionBlock(const AttentionOperands<T>& in, int tile, int head,
                               unsigned char* shared)
      : in_(&in), shared_(shared), tile_(tile), head_(head) {}

  SINTER_DEVICE int tile() const { return tile_; }
  SINTER_DEVICE int head() const { return head_; }

  // All lanes of a warp find it together.
  SINTER_DEVICE SeenRange find_seen_range() const {
    SeenRange range = {kMost, -1};
#pragma unroll
    for (int i = 0; i < Sizes::rows; i += 32) {
      const int row = i + static_cast<int>(threadIdx.x) % 32;
      const SeenKeys seen = seen_by(row);
      if (!is_there(row) || seen.count == 0) continue;
      const int high = seen.low + static_cast<int>(seen.count) - 1;
      if (seen.low < range.low) range.low = seen.low;
      if (high > range.high) range.high = high;
    }
#pragma unroll
    for (int stride = 1; stride < 32; stride *= 2) {
      const int low = __shfl_xor_sync(0xffffffffu, range.low, stride);
      const int high = __shfl_xor_sync(0xffffffffu, range.high, stride);
      if (low < range.low) range.low = low;
      if (high > range.high) range.high = high;
    }
    return range;
  }
  // Sets the keys that loads of keys and values read; other rows of a tile become zeros.
  SINTER_DEVICE void set_seen_range(SeenRange range) { seen_ = range; }
  // At least one: rows that see no key have a tile of zeros, all of which are masked.
  SINTER_DEVICE static SeenTiles tiles_of(SeenRange range) {
    if (range.high < range.low) return {0, 1};
    return {range.low / Sizes::keys, range.high / Sizes::keys + 1};
  }
  // A row that is not there sees all keys.
  SINTER_DEVICE SeenKeys seen_by(int row) const {
    if (!is_there(row)) return {0, kMost};
    const AttentionRange range = rows_of_cache(
        attention_range(in_->first[token0() + row], in_->last[token0() + row], Config::kWindow),
        in_->cache_rows);
    return {static_cast<int>(range.low), static_cast<unsigned>(range.count)};
  }

  SINTER_DEVICE unsigned char* queries(int stage) const {
    return shared_ + stage * Sizes::query_bytes;
  }
  SINTER_DEVICE unsigned char* keys(int stage) const {
    return queries(Config::kQueryStages) + stage * Sizes::key_bytes;
  }
  SINTER_DEVICE unsigned char* values(int stage) const {
    return keys(Config::kStages) + stage * Sizes::value_bytes;
  }

  // Computes the block's queries, by `threads` threads of which this is number `thread`.
  template <int threads, typename Query>
  SINTER_DEVICE void take_queries(const Query& q, int stage, int thread) const {
    constexpr int chunks = Sizes::width / 8, all = Sizes::rows * chunks;
    // Chunks that a thread loads before it stores any of them: 4, 5 or 3 where that divides its
    // rounds.
    constexpr int rounds = (all + threads - 1) / threads;
    constexpr int together = rounds % 4 == 0   ? 4
                             : rounds % 5 == 0 ? 5
                             : rounds % 3 == 0 ? 3
                             : rounds == 1     ? 1
                                               : 2;
#pragma unroll 1
    for (int begin = thread; begin < all; begin += together * threads) {
      uint4 words[together];
#pragma unroll
      for (int g = 0; g < together; ++g) {
        const int i = begin + g * threads, row = i / chunks, chunk = i % chunks;
        if (all % (together * threads) != 0 && i >= all) break;
        // Rows that are not there have the queries of the last one; nobody asks for their results.
        const long long last = in_->tokens - 1 - token0();
        const long long at = element(row < last ? row : last, Config::kWidth) + 8 * chunk;
        float values[8] = {};
        if constexpr (Config::kWidth % 8 == 0) {
          if (8 * chunk < Config::kWidth) q.chunk(values, at);
        } else {
#pragma unroll
          for (int e = 0; e < 8; ++e)
            if (8 * chunk + e < Config::kWidth) values[e] = q(at + e);
        }
        words[g] = narrow(static_cast<const T*>(nullptr), values);
      }
#pragma unroll
      for (int g = 0; g < together; ++g) {
        const int i = begin + g * threads;
        if (all % (together * threads) != 0 && i >= all) break;
        place(queries(stage), Sizes::rows, Sizes::width, i / chunks, i % chunks) = words[g];
      }
    }
  }

  // Loads of a tile are copies that are waited for, or are made at once.
  static constexpr bool kCopiesKeys = Config::kAligned && Config::kWidth % 8 == 0;
  static constexpr bool kCopiesValues = Config::kAligned && Config::kValueWidth % 8 == 0;
  // Loads a tile of keys, or of values, by `threads` threads of which this is number `thread`;
  // zeros where no row of the block sees the key.
  template <int threads>
  SINTER_DEVICE void load_keys(int tile, int stage, int thread) const {
    load_tile<Config::kWidth, threads>(keys(stage), in_->keys + kv_head() * Config::kWidth,
                                       in_->keys_stride, tile, thread);
  }
  template <int threads>
  SINTER_DEVICE void load_values(int tile, int stage, int thread) const {
    load_tile<Config::kValueWidth, threads>(values(stage),
                                            in_->values + kv_head() * Config::kValueWidth,
                                            in_->values_stride, tile, thread);
  }

  // Gives the result a lane's rows, `row0` and 8 more: `sums` as a product of tensor cores has
  // them. Of every four chunks of a row, which are in four lanes, a lane gets one.
  template <typename Result>
  SINTER_DEVICE void give(const float (&sums)[Sizes::value_width / 2], int row0,
                          const Result& out) const {
    constexpr int chunks = (Config::kValueWidth + 7) / 8;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = row0 + 8 * half;
#pragma unroll
      for (int first = 0; first < chunks; first += 4) {
        unsigned words[4] = {};
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (first + i < Sizes::value_width / 8)
            words[i] = pack(static_cast<const T*>(nullptr), sums[4 * (first + i) + 2 * half],
                            sums[4 * (first + i) + 2 * half + 1]);
        exchange<1>(words[0], words[1], lane);
        exchange<1>(words[2], words[3], lane);
        exchange<2>(words[0], words[2], lane);
        exchange<2>(words[1], words[3], lane);
        const int chunk = first + lane % 4;
        if (chunk >= chunks || !is_there(row)) continue;
        const long long at = element(row, Config::kValueWidth) + 8 * chunk;
        float values[8];
        widen(values, static_cast<const T*>(nullptr),
              make_uint4(words[0], words[1], words[2], words[3]));
        if constexpr (Config::kValueWidth % 8 == 0) {
          out.set_chunk(at, values);
        } else {
#pragma unroll
          for (int e = 0; e < 8; ++e)
            if (8 * chunk + e < Config::kValueWidth) out.set(at + e, values[e]);
        }
      }
    }
  }

 private:
  // Lanes that differ in `bit` swap the second word of the lower one and the first of the other.
  template <int bit>
  SINTER_DEVICE static void exchange(unsigned& first, unsigned& second, int lane) {
    const bool upper = (lane & bit) != 0;
    const unsigned other = __shfl_xor_sync(0xffffffffu, upper ? first : second, bit);
    if (upper)
      first = other;
    else
      second = other;
  }

  SINTER_DEVICE long long token0() const { return static_cast<long long>(tile_) * Sizes::rows; }
  SINTER_DEVICE int kv_head() const { return head_ / (Config::kHeads / Config::kKvHeads); }
  SINTER_DEVICE bool is_there(int row) const { return token0() + row < in_->tokens; }
  // The first element of a row's head in a tensor of so many elements a head.
  SINTER_DEVICE long long element(long long row, int width) const {
    return ((token0() + row) * Config::kHeads + head_) * width;
  }
  SINTER_DEVICE static uint4& place(unsigned char* tile, int rows, int padded, int row, int chunk) {
    return *reinterpret_cast<uint4*>(tile + attention_offset(rows, padded, row, chunk));
  }

  // A thread has the same chunk of every so many rows.
  template <int width, int threads>
  SINTER_DEVICE void load_tile(unsigned char* to, const T* from, long long stride, int tile,
                               int thread) const {
    constexpr int padded = attention_padded(width), chunks = padded / 8, rows = threads / chunks;
    const int chunk = thread % chunks, row0 = thread / chunks, key0 = tile * Sizes::keys;
    if (row0 >= rows) return;
    const T* const own = from + (key0 + row0) * stride + 8 * chunk;
    if (Config::kAligned && width == padded && key0 >= seen_.low &&
        key0 + (Sizes::keys - 1) <= seen_.high) {
#pragma unroll
      for (int row = 0; row < Sizes::keys; row += rows)
        if (row + rows <= Sizes::keys || row + row0 < Sizes::keys)
          copy_async(&place(to, Sizes::keys, padded, row + row0, chunk), own + row * stride, true);
      return;
    }
#pragma unroll 1
    for (int row = 0; row + row0 < Sizes::keys; row += rows) {
      const int key = key0 + row0 + row;
      const bool seen = key >= seen_.low && key <= seen_.high;
      uint4& out = place(to, Sizes::keys, padded, row + row0, chunk);
      if constexpr (Config::kAligned && width % 8 == 0) {
        const bool present = seen && 8 * chunk < width;
        copy_async(&out, present ? own + row * stride : from, present);
      } else {
        unsigned words[4] = {};
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (seen && 8 * chunk + e < width)
            words[e / 2] |= static_cast<unsigned>(own[row * stride + e].bits) << 16 * (e % 2);
        out = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }

  const AttentionOperands<T>* in_;
  unsigned char* shared_;
  int tile_, head_;
  SeenRange seen_;
};

}  // namespace sinter
