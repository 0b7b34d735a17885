// Shared by both forms of tiled_attention: which keys the rows of a block see, the tiles in shared
// memory, and the result.
#pragma once

#include "kernels/common/attention_operands.cuh"
#include "kernels/isa/tensor_map.cuh"
#include "kernels/tile/loaders/cache_rows.cuh"
#include "kernels/tile/loaders/dense.cuh"
#include "kernels/tile/sums/fragment.cuh"
#include "kernels/tiled_attention/order.h"

namespace sinter {

template <typename Config>
struct TiledSizes {
  static constexpr int rows = Config::kRows;
  static constexpr int keys = attention_key_tile(Config::kWidth, Config::kValueWidth);
  static constexpr int width = tile_padded(Config::kWidth);
  static constexpr int value_width = tile_padded(Config::kValueWidth);
  static constexpr int query_bytes = tile_bytes(rows, width);
  static constexpr int key_bytes = tile_bytes(keys, width);
  static constexpr int value_bytes = tile_bytes(keys, value_width);
};

// The kernel has the log-sum of each token's head as a result.
template <typename Config, typename = void>
constexpr bool kLogSumOf = false;
template <typename Config>
constexpr bool kLogSumOf<Config, decltype(static_cast<void>(Config::kLogSum))> = Config::kLogSum;

// Whole tiles of keys and values are bulk copies.
template <typename Config, typename = void>
constexpr bool kBulkCopiesOf = false;
template <typename Config>
constexpr bool kBulkCopiesOf<Config, decltype(static_cast<void>(Config::kBulkCopies))> =
    Config::kBulkCopies;

// Keys of a segment (order.h); 0: they are not cut.
template <typename Config, typename = void>
constexpr int kSegmentOf = 0;
template <typename Config>
constexpr int kSegmentOf<Config, decltype(static_cast<void>(Config::kSegment))> = Config::kSegment;
template <typename Config>
constexpr bool kHasSegments = kSegmentOf<Config> != 0;

// Whether a segment of each of a lane's two rows has ended, and how its state is joined.
struct EndedSegments {
  bool rows[2];
  AttentionJoin joins[2];
};

// A lane's two rows at the end: the factors of their weighted sums and, where kLogSumOf,
// their log-sums. `joins`: the sums of earlier segments are joined first, as `ended` says.
struct AttentionEnds {
  float factors[2], log_sums[2];
  bool joins;
  EndedSegments ended;
};

// The operands of a launch: keys and values, the row numbers of all tokens, the mask, and how many
// sequences there are, each of `tokens` tokens and with `cache_rows` keys.
template <typename Config>
struct AttentionOperands {
  AttentionRows<typename Config::Element> keys, values;
  typename Config::First first;
  typename Config::Last last;
  typename Config::Mask mask;
  long long sequences, tokens, cache_rows;
  float* log_sum = nullptr;  // [sequences, heads, tokens]; written where kLogSumOf
#if SINTER_HAS_WGMMA
  // [elements, heads, rows, sequences], without the last axis unless there may be more than one;
  // where kBulkCopiesOf
  const TensorMap *key_map = nullptr, *value_map = nullptr;
#endif

  SINTER_DEVICE int row_tiles_of_sequence() const {
    return static_cast<int>((tokens + Config::kRows - 1) / Config::kRows);
  }
};

// A tile of rows of all sequences, as one of a sequence.
struct AttentionRowTile {
  int sequence, tile;
};
template <typename Config>
SINTER_DEVICE AttentionRowTile row_tile_of(const AttentionOperands<Config>& in, int tile) {
  if constexpr (!Config::kSequences) return {0, tile};
  const int tiles = in.row_tiles_of_sequence();
  return {tile / tiles, tile % tiles};
}

// Keys that a row sees: low .. low + count - 1, and the sink's keys if low > 0 (AttentionRange).
template <bool has_segments>
struct SeenKeysOf {
  int low;
  unsigned count;
};
template <>
struct SeenKeysOf<true> {
  int low;
  unsigned count;
  int first;  // row of its sequence
};
template <typename Config>
using SeenKeys = SeenKeysOf<kHasSegments<Config>>;

// Tiles of keys: from `first` on, those before `end`.
struct SeenTiles {
  int first, end;
};

// A block's place: a tile of rows of a head.
template <typename Config>
class AttentionBlock {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  static constexpr int kMax = 0x7fffffff;
  static constexpr bool kHasTiles = Config::Mask::kHasTiles, kHasSink = kSinkOf<Config> != 0;
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  // Tiles of keys between the first and the last that are seen may be left out.
  static constexpr bool kSkipsTiles = kHasTiles || kHasSink;

  // `tile`: of rows, of all sequences.
  SINTER_DEVICE AttentionBlock(const AttentionOperands<Config>& in, int tile, int head,
                               unsigned char* shared)
      : in_(&in), shared_(shared), tile_(tile), head_(head), place_(row_tile_of(in, tile)) {}

  SINTER_DEVICE int tile() const { return tile_; }
  SINTER_DEVICE int head() const { return head_; }

  // The keys from the lowest to the highest that a row sees, from the first tile on that is shown;
  // none if none is. A sink is not part of them, where no row's range reaches it. All lanes of a
  // warp find it together.
  SINTER_DEVICE RowRange find_seen_range() const {
    RowRange range = {kMax, -1};
#pragma unroll
    for (int i = 0; i < Sizes::rows; i += 32) {
      const int row = i + static_cast<int>(threadIdx.x) % 32;
      const SeenKeys<Config> seen = seen_by(row);
      if (!is_there(row) || seen.count == 0) continue;
      const int high = seen.low + static_cast<int>(seen.count) - 1;
      if (seen.low < range.low) range.low = seen.low;
      if (high > range.high) range.high = high;
    }
#pragma unroll
    for (int stride = 1; stride < 32; stride *= 2) {
      const int low = __shfl_xor_sync(kAll, range.low, stride);
      const int high = __shfl_xor_sync(kAll, range.high, stride);
      if (low < range.low) range.low = low;
      if (high > range.high) range.high = high;
    }
    if constexpr (kHasTiles) {
      const SeenTiles tiles = tiles_of(range);
      const int first = next_shown_tile(tiles.first, tiles.end, range.low);
      if (first == tiles.end) return {kMax, -1};
      if (first > tiles.first && !kHasSink) range.low = first * Sizes::keys;
    }
    return range;
  }
  // The keys that a row sees; all rows see keys in `range` only.
  SINTER_DEVICE SeenKeys<Config> seen_within(RowRange range, int row) const {
    if (kHasTiles && range.high < range.low) return {};
    return seen_by(row);
  }
  // Sets the keys that loads of keys and values read; other rows of a tile become zeros.
  SINTER_DEVICE void set_seen_range(RowRange range) { seen_ = range; }
  // At least one: rows that see no key have a tile of zeros, all of which are masked.
  SINTER_DEVICE static SeenTiles tiles_of(RowRange range) {
    if (range.high < range.low) return {0, 1};
    return {kHasSink ? 0 : range.low / Sizes::keys, range.high / Sizes::keys + 1};
  }
  // The tiles of tiles_of(), from the first on that is shown. All lanes of a warp call it.
  SINTER_DEVICE SeenTiles shown_tiles(RowRange range) const {
    SeenTiles tiles = tiles_of(range);
    if (kHasSink && kHasTiles && range.low <= range.high)
      tiles.first = next_shown_tile(tiles.first, tiles.end, range.low);
    return tiles;
  }
  // The first tile of keys from `tile` on that rows see and that a summary of the mask shows, or
  // `end`. All lanes of a warp call it.
  SINTER_DEVICE int next_tile(int tile, int end) const {
    return next_shown_tile(tile, end, seen_.low);
  }
  // A row that is not there sees all keys.
  SINTER_DEVICE SeenKeys<Config> seen_by(int row) const {
    if (!is_there(row)) return {0, static_cast<unsigned>(in_->cache_rows)};
    const long long token = sequence_token0() + token0() + row;
    const int first = in_->first(token);
    const AttentionRange range = visible_keys<Config>(first, in_->last(token), in_->cache_rows);
    SeenKeys<Config> seen = {static_cast<int>(range.low), static_cast<unsigned>(range.count)};
    if constexpr (kHasSegments<Config>) seen.first = first;
    return seen;
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
  SINTER_DEVICE void load_queries(const Query& q, int stage, int thread) const {
    // Rows that are not there have the queries of the last one; nobody asks for their results.
    const long long last = in_->tokens - 1 - token0();
    load_dense<T, Sizes::rows, Config::kWidth, threads>(
        queries(stage), q,
        [&](int row) { return element(row < last ? row : last, Config::kWidth); }, thread);
  }

  // Loads of a tile are copies that are waited for, or are made at once.
  static constexpr bool kCopiesKeys = Config::kAligned && Config::kWidth % 8 == 0;
  static constexpr bool kCopiesValues = Config::kAligned && Config::kValueWidth % 8 == 0;
  // Loads a tile of keys, or of values, by `threads` threads of which this is number `thread`;
  // zeros where no row of the block sees the key.
  template <int threads>
  SINTER_DEVICE void load_keys(int tile, int stage, int thread) const {
    load_cache_rows<Sizes::keys, Config::kWidth, threads, Config::kAligned, !kBulkCopiesOf<Config>>(
        keys(stage), head_of(in_->keys), in_->keys.row_stride, tile, seen_in(tile), thread);
  }
  template <int threads>
  SINTER_DEVICE void load_values(int tile, int stage, int thread) const {
    load_cache_rows<Sizes::keys, Config::kValueWidth, threads, Config::kAligned,
                    !kBulkCopiesOf<Config>>(values(stage), head_of(in_->values),
                                            in_->values.row_stride, tile, seen_in(tile), thread);
  }

  // All keys of a tile that the cache has are seen by some row: its bulk copy has the same zeros.
  SINTER_DEVICE bool has_whole_tile(int tile) const {
    const RowRange seen = seen_in(tile);
    const int last = (tile + 1) * Sizes::keys - 1;
    return tile * Sizes::keys >= seen.low && (last <= seen.high || seen.high + 1 >= cache_rows());
  }
#if SINTER_HAS_WGMMA
  // One thread copies a whole tile of keys, or of values; the barrier counts its bytes.
  SINTER_DEVICE void copy_keys(int tile, int stage, SharedAddress barrier) const {
    copy_panels<Config::kWidth>(keys(stage), *in_->key_map, tile, barrier);
  }
  SINTER_DEVICE void copy_values(int tile, int stage, SharedAddress barrier) const {
    copy_panels<Config::kValueWidth>(values(stage), *in_->value_map, tile, barrier);
  }
#endif

  // The mask of a row, for its keys.
  SINTER_DEVICE auto mask_of(int row) const {
    // A row beyond the last one uses the last row's mask.
    const long long last = in_->tokens - 1 - token0();
    return in_->mask.row(place_.sequence, head_, token0() + (row < last ? row : last));
  }

  // The bits of a row's dropout that all keys share.
  SINTER_DEVICE unsigned dropout_row(int row) const {
    const long long head = static_cast<long long>(place_.sequence) * Config::kHeads + head_;
    return in_->mask.dropout_row(head, token0() + row);
  }

  SINTER_DEVICE int cache_rows() const { return static_cast<int>(in_->cache_rows); }

  // Gives the result a lane's rows, `row0` and 8 more: `sums` as a product of tensor cores has
  // them, multiplied by the factors of `ends`.
  template <typename Result>
  SINTER_DEVICE void store_result(const float (&sums)[Sizes::value_width / 2], int row0,
                                  const AttentionEnds& ends, const Result& out) const {
    if constexpr (kLogSumOf<Config>) store_log_sums(row0, ends.log_sums);
    constexpr int width = Config::kValueWidth, chunks = (width + 7) / 8;
    const auto first = [&](int half, int chunk) {
      return element(row0 + 8 * half, width) + 8 * chunk;
    };
    if constexpr (kTakesWords<Result> && width % 8 == 0)
      take_chunks<T, chunks, 1, uint4>(sums, [&](int half, int chunk, const uint4(&words)[1]) {
        if (is_there(row0 + 8 * half)) out.set_words(first(half, chunk), words[0]);
      });
    else
      take_chunks<T, chunks>(sums, [&](int half, int chunk, const Chunk(&values)[1]) {
        if (is_there(row0 + 8 * half))
          write_port<width % 8 == 0>(out, first(half, chunk), width - 8 * chunk, values[0]);
      });
  }

 private:
#if SINTER_HAS_WGMMA
  template <int width>
  SINTER_DEVICE void copy_panels(unsigned char* to, const TensorMap& map, int tile,
                                 SharedAddress barrier) const {
    constexpr int panel = tile_panel_row(width) / 2;  // elements of a row
#pragma unroll
    for (int x = 0; x < width; x += panel) {
      const SharedAddress place = cvta_to_shared(to + x / panel * tile_panel(Sizes::keys, width));
      if constexpr (Config::kSequences)
        cp_async_bulk_tensor_4d(place, map, x, kv_head(), tile * Sizes::keys, place_.sequence,
                                barrier);
      else
        cp_async_bulk_tensor_3d(place, map, x, kv_head(), tile * Sizes::keys, barrier);
    }
  }
#endif
  // The first of the four lanes that share a row stores its log-sum.
  SINTER_DEVICE void store_log_sums(int row0, const float (&log_sums)[2]) const {
    if (threadIdx.x % 4 != 0) return;
    float* const of_head =
        in_->log_sum +
        (place_.sequence * static_cast<long long>(Config::kHeads) + head_) * in_->tokens + token0();
#pragma unroll
    for (int half = 0; half < 2; ++half)
      if (is_there(row0 + 8 * half)) of_head[row0 + 8 * half] = log_sums[half];
  }
  // The keys from the lowest to the highest of a tile that some row sees.
  SINTER_DEVICE RowRange seen_in(int tile) const {
    RowRange seen = seen_;
    if (seen.high < seen.low || !is_of_sink<Config>(tile * Sizes::keys, seen.low)) return seen;
    seen.low = 0;
    if ((tile + 1) * Sizes::keys <= seen_.low) seen.high = kSinkOf<Config> - 1;
    return seen;
  }
  // `low`: the lowest key of a row's range.
  SINTER_DEVICE int next_shown_tile(int tile, int end, int low) const {
    const auto without_gap = [&](int from) {
      return after_gap<Config>(from * Sizes::keys, low, Sizes::keys) / Sizes::keys;
    };
    if constexpr (kHasTiles) {
      static_assert(kAttentionTokenTile % Config::kRows == 0, "a block has tokens of one tile");
      const auto shown =
          in_->mask.tiles.row(place_.sequence, head_, token0() / kAttentionTokenTile);
      for (; tile < end; tile += 32) {
        const int own = tile + static_cast<int>(threadIdx.x) % 32;
        const bool seen = own < end && without_gap(own) == own;
        const unsigned found = __ballot_sync(kAll, seen && shown[own]);
        if (found != 0) return tile + __ffs(found) - 1;
      }
      return end;
    }
    return tile < end ? without_gap(tile) : tile;
  }
  // The first token of the tile in its sequence, and of the sequence among all tokens.
  SINTER_DEVICE long long token0() const {
    return static_cast<long long>(place_.tile) * Sizes::rows;
  }
  SINTER_DEVICE long long sequence_token0() const {
    if constexpr (!Config::kSequences) return 0;
    return place_.sequence * in_->tokens;
  }
  SINTER_DEVICE int kv_head() const { return head_ / (Config::kHeads / Config::kKvHeads); }
  SINTER_DEVICE bool is_there(int row) const { return token0() + row < in_->tokens; }
  // The first element of a row's head in a tensor of `width` elements a head.
  SINTER_DEVICE long long element(long long row, int width) const {
    return ((sequence_token0() + token0() + row) * Config::kHeads + head_) * width;
  }
  // The key head's row 0 of the sequence.
  SINTER_DEVICE const T* head_of(const AttentionRows<T>& rows) const {
    return rows.row0(place_.sequence, kv_head());
  }

  const AttentionOperands<Config>* in_;
  unsigned char* shared_;
  int tile_, head_;
  AttentionRowTile place_;
  RowRange seen_;
};

}  // namespace sinter
