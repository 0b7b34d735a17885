// Shared by both forms of the gradients of attention: what a block computes, the rows that it
// walks, and its tiles in shared memory.
//
// A block has `own` rows of a head: tokens, for the gradient of queries, or keys, for the gradients
// of keys and values. It walks tiles of the `other` rows and multiplies each with two tiles of its
// own:
//
//   gradient of       own tiles        other tiles      dots   products  sums
//   queries           q, grad          keys, values     q·k    dP        dS keys
//   keys and values   keys, values     q, grad          q·k    dP        dS q, P grad
//
// So one text computes all gradients; `first` is the tile of queries or keys, `second` the tile of
// the result's gradient or of values.
#pragma once

#include "kernels/attention_backward/gradient_sums.cuh"
#include "kernels/attention_backward/order.h"
#include "kernels/common/attention_operands.cuh"
#include "kernels/common/placed_result.cuh"
#include "kernels/isa/bar.cuh"
#include "kernels/tile/loaders/cache_rows.cuh"
#include "kernels/tile/sums/fragment.cuh"
#include "kernels/tile/tiles/cached_lists.cuh"

namespace sinter {

constexpr int kSumsBarrier = 1;  // of the threads that multiply

template <typename Config>
struct GradientSizes {
  static constexpr int own = Config::kOwnRows, other = Config::kOtherRows;
  static constexpr int width = tile_padded(Config::kWidth);
  static constexpr int value_width = tile_padded(Config::kValueWidth);
  static constexpr int own_first_bytes = tile_bytes(own, width);
  static constexpr int own_second_bytes = tile_bytes(own, value_width);
  static constexpr int other_first_bytes = tile_bytes(other, width);
  static constexpr int other_second_bytes = tile_bytes(other, value_width);
};

// The operands and results of a launch. log_sum and delta: [sequences, heads, tokens].
template <typename Config>
struct GradientOperands {
  using T = typename Config::Element;
  AttentionRows<T> q, keys, values, grad;
  const float *log_sum, *delta;
  typename Config::First first;
  typename Config::Last last;
  typename Config::Mask mask;
  long long sequences, tokens, key_rows;
  typename Config::FirstResult first_result;  // of a null pointer where it is not stored
  typename Config::SecondResult second_result;
  float *first_sums, *second_sums;  // [sequences, own rows / 64, heads * width], or null

  SINTER_DEVICE AttentionRange seen_by(long long sequence, long long token) const {
    const long long at = sequence * tokens + token;
    return visible_keys<Config>(first(at), last(at), key_rows);
  }
};

// A token of a head, as the gradient needs it. A token that is not there sees no key.
struct GradientToken {
  float shift, delta;
  int low;
  unsigned count;        // of the keys from `low` on, which it sees
  unsigned dropout_row;  // bits that all keys share

  SINTER_DEVICE bool sees(int key) const { return static_cast<unsigned>(key - low) < count; }
};

// The tokens of a tile, in shared memory: a lane reads what it needs of two neighbours at once.
template <int rows, bool has_dropout>
struct alignas(8) GradientTokens {
  float shift[rows], delta[rows];
  int low[rows];
  unsigned count[rows];
  unsigned dropout_row[has_dropout ? rows : 1];

  SINTER_DEVICE void set(int row, const GradientToken& token) {
    shift[row] = token.shift;
    delta[row] = token.delta;
    low[row] = token.low;
    count[row] = token.count;
    if constexpr (has_dropout) dropout_row[row] = token.dropout_row;
  }
};

// The tokens of a tile of other rows; a block of queries keeps none in shared memory.
template <typename Config>
using TokensOfTile =
    GradientTokens<Config::kOfKeys ? Config::kOtherRows : 2, Config::Mask::kDropout != 0>;

// The numbers in memory that a GradientToken is made of.
struct TokenNumbers {
  bool is_there = false;
  int first = 0, last = -1;
  float log_sum = 0.0f, delta = 0.0f;
  unsigned dropout_row = 0;
};

// Which tiles of tokens see keys of a block, for blocks of keys. Many tiles share a flag.
struct SeenTokens {
  static constexpr int kFlags = 2048;
  enum : unsigned char { kNone = 0, kSome = 1, kAll = 2 };  // of the tokens see all keys
  unsigned char flags[kFlags];
};

// A block's place: a tile of its own rows, of a head.
template <typename Config>
class GradientBlock {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  static constexpr bool kOfKeys = Config::kOfKeys;
  static constexpr int kGroup = Config::kHeads / Config::kKvHeads;
  static constexpr unsigned kLanes = 0xffffffffu;

 public:
  // The tiles of a head of a sequence are a list. Costly tiles first: of causal attention the last
  // tokens, and the first keys.
  SINTER_DEVICE GradientBlock(const GradientOperands<Config>& in, unsigned char* shared)
      : in_(in), shared_(shared) {
    const int number = static_cast<int>(blockIdx.x), heads = own_heads();
    const int tiles = static_cast<int>((own_rows() + Sizes::own - 1) / Sizes::own);
    const CachedLists lists(tiles, heads * static_cast<int>(in.sequences), bytes_of_others(),
                            Config::kCachedBytes);
    has_rows_ = lists.has(number);
    if (!has_rows_) return;
    const ListTile own = lists.tile(number);
    tile_ = kOfKeys ? own.place : tiles - 1 - own.place;
    head_ = own.list % heads;
    sequence_ = own.list / heads;
  }

  // False for blocks that a launch has beyond its tiles.
  SINTER_DEVICE bool has_rows() const { return has_rows_; }
  SINTER_DEVICE static constexpr int own_heads() {
    return kOfKeys ? Config::kKvHeads : Config::kHeads;
  }
  SINTER_DEVICE long long own_rows() const { return kOfKeys ? in_.key_rows : in_.tokens; }
  SINTER_DEVICE long long other_rows() const { return kOfKeys ? in_.tokens : in_.key_rows; }
  SINTER_DEVICE int own_row0() const { return tile_ * Sizes::own; }
  SINTER_DEVICE bool is_there(int row) const { return own_row0() + row < own_rows(); }
  SINTER_DEVICE int other_tiles() const {
    return static_cast<int>((other_rows() + Sizes::other - 1) / Sizes::other);
  }
  // Query heads whose tiles a block walks one after the other.
  static constexpr int kTurns = kOfKeys ? kGroup : 1;
  SINTER_DEVICE int query_head(int turn) const { return kOfKeys ? head_ * kGroup + turn : head_; }
  SINTER_DEVICE int kv_head() const { return kOfKeys ? head_ : head_ / kGroup; }

  SINTER_DEVICE unsigned char* own_first() const { return shared_; }
  SINTER_DEVICE unsigned char* own_second() const { return shared_ + Sizes::own_first_bytes; }
  SINTER_DEVICE unsigned char* other_first(int stage) const {
    return own_second() + Sizes::own_second_bytes +
           stage * (Sizes::other_first_bytes + Sizes::other_second_bytes);
  }
  SINTER_DEVICE unsigned char* other_second(int stage) const {
    return other_first(stage) + Sizes::other_first_bytes;
  }

  static constexpr bool kCopies =
      Config::kAligned && Config::kWidth % 8 == 0 && Config::kValueWidth % 8 == 0;
  // Loads the block's own tiles by all of its threads, or tiles of other rows by `threads` threads
  // of which this is number `thread`; zeros for rows that are not there.
  SINTER_DEVICE void load_own() const {
    constexpr int threads = Config::kThreads;
    const RowRange all = {0, static_cast<int>(own_rows()) - 1};
    const int head = kOfKeys ? kv_head() : query_head(0), thread = static_cast<int>(threadIdx.x);
    load<threads, Sizes::own, Config::kWidth>(own_first(), kOfKeys ? in_.keys : in_.q, head, tile_,
                                              all, thread);
    load<threads, Sizes::own, Config::kValueWidth>(own_second(), kOfKeys ? in_.values : in_.grad,
                                                   head, tile_, all, thread);
  }
  template <int threads>
  SINTER_DEVICE void load_other(int turn, int tile, int stage, int thread) const {
    const RowRange all = {0, static_cast<int>(other_rows()) - 1};
    const int head = kOfKeys ? query_head(turn) : kv_head();
    load<threads, Sizes::other, Config::kWidth>(other_first(stage), kOfKeys ? in_.q : in_.keys,
                                                head, tile, all, thread);
    load<threads, Sizes::other, Config::kValueWidth>(
        other_second(stage), kOfKeys ? in_.grad : in_.values, head, tile, all, thread);
  }

  SINTER_DEVICE long long other_row0(int tile) const {
    return static_cast<long long>(tile) * Sizes::other;
  }

  SINTER_DEVICE TokenNumbers numbers_of(int turn, long long token) const {
    if (token >= in_.tokens) return {};
    const long long place = sequence_ * in_.tokens + token;
    const long long head = sequence_ * static_cast<long long>(Config::kHeads) + query_head(turn);
    const long long at = head * in_.tokens + token;
    unsigned dropout_row = 0;
    if constexpr (Config::Mask::kDropout != 0) dropout_row = in_.mask.dropout_row(head, token);
    return {true, in_.first(place), in_.last(place), in_.log_sum[at], in_.delta[at], dropout_row};
  }
  SINTER_DEVICE GradientToken token_of(const TokenNumbers& numbers) const {
    if (!numbers.is_there) return {-math::infinity(), 0.0f, 0, 0u, 0u};
    const AttentionRange keys = visible_keys<Config>(numbers.first, numbers.last, in_.key_rows);
    return {probability_shift(numbers.log_sum), numbers.delta, static_cast<int>(keys.low),
            static_cast<unsigned>(keys.count), numbers.dropout_row};
  }
  SINTER_DEVICE GradientToken token(int turn, long long token) const {
    return token_of(numbers_of(turn, token));
  }

  // In a block of keys, finds the tiles of tokens that see some of them. All warps of the block
  // share the work; __syncthreads() follows.
  SINTER_DEVICE void find_seen_tokens(SeenTokens& seen) const {
    constexpr int warps = Config::kThreads / 32;
    const int lane = static_cast<int>(threadIdx.x) % 32,
              flags = (other_tiles() + per_flag() - 1) / per_flag();
    const int low = own_row0(), end = at_most(low + Sizes::own, static_cast<int>(in_.key_rows));
    for (int flag = static_cast<int>(threadIdx.x) / 32; flag < flags; flag += warps) {
      bool some = false, all = true;
      const long long begin = static_cast<long long>(flag) * per_flag() * Sizes::other;
      const long long stop = begin + static_cast<long long>(per_flag()) * Sizes::other;
#pragma unroll 2
      for (long long token = begin + lane; token < stop; token += 32) {
        AttentionRange keys = {0, 0};
        if (token < in_.tokens) keys = in_.seen_by(sequence_, token);
        some = some || (keys.count > 0 && keys.low < end && keys.low + keys.count > low);
        all = all && keys.low <= low && keys.low + keys.count >= end;
      }
      some = __any_sync(kLanes, some);
      all = __all_sync(kLanes, all);
      if (lane == 0)
        seen.flags[flag] = !some ? SeenTokens::kNone : all ? SeenTokens::kAll : SeenTokens::kSome;
    }
  }
  SINTER_DEVICE int per_flag() const { return other_tiles() / SeenTokens::kFlags + 1; }

  // In a block of tokens, finds the keys from the lowest to the highest that one of them sees. All
  // lanes of a warp find it together.
  SINTER_DEVICE RowRange find_seen_keys() const {
    RowRange range = {0x7fffffff, -1};
#pragma unroll
    for (int i = 0; i < Sizes::own; i += 32) {
      const int row = i + static_cast<int>(threadIdx.x) % 32;
      if (!is_there(row)) continue;
      const AttentionRange seen = in_.seen_by(sequence_, own_row0() + row);
      if (seen.count == 0) continue;
      const int low = static_cast<int>(seen.low), high = low + static_cast<int>(seen.count) - 1;
      if (low < range.low) range.low = low;
      if (high > range.high) range.high = high;
    }
#pragma unroll
    for (int stride = 1; stride < 32; stride *= 2) {
      const int low = __shfl_xor_sync(kLanes, range.low, stride);
      const int high = __shfl_xor_sync(kLanes, range.high, stride);
      if (low < range.low) range.low = low;
      if (high > range.high) range.high = high;
    }
    return range;
  }

  // The mask of a token's head, for its keys.
  SINTER_DEVICE auto mask_of(int turn, long long token) const {
    return in_.mask.row(sequence_, query_head(turn), token < in_.tokens ? token : in_.tokens - 1);
  }
  SINTER_DEVICE int last_key() const { return static_cast<int>(in_.key_rows) - 1; }

  // Stores the gradients of a lane's rows, `row0` and 8 more, and the sums of each 64 rows. The
  // threads that multiply, `multiplying` in number, call it when all tiles have been walked.
  template <int multiplying>
  SINTER_DEVICE void store(float (&first)[Sizes::width / 2],
                           float (&second)[Sizes::value_width / 2], int row0) const {
    if constexpr (Config::kFirst) {
#pragma unroll
      for (float& value : first) value = math::mul(value, Config::kScale);
    }
    if constexpr (Config::kSecond && Config::Mask::kDropout != 0) {
      constexpr float scale = dropout_scale(Config::Mask::kDropout);
#pragma unroll
      for (float& value : second) value = math::mul(value, scale);
    }
    if constexpr (Config::kStoresFirst) store_rows<Config::kWidth>(first, row0, in_.first_result);
    if constexpr (Config::kStoresSecond)
      store_rows<Config::kValueWidth>(second, row0, in_.second_result);
    if constexpr (Config::kSumsFirst || Config::kSumsSecond) store_sums<multiplying>(first, second);
  }

 private:
  SINTER_DEVICE static int at_most(int x, int most) { return x < most ? x : most; }
  // Bytes of the other rows that a head's blocks read: the query heads of a group share keys and
  // values.
  SINTER_DEVICE long long bytes_of_others() const {
    constexpr int elements = Config::kWidth + Config::kValueWidth;
    const long long bytes = other_rows() * elements * static_cast<int>(sizeof(T));
    return kOfKeys ? bytes * kGroup : bytes / kGroup;
  }

  template <int threads, int rows, int width>
  SINTER_DEVICE void load(unsigned char* tile, const AttentionRows<T>& from, int head, int number,
                          const RowRange& range, int thread) const {
    load_cache_rows<rows, width, threads, Config::kAligned>(tile, from.row0(sequence_, head),
                                                            from.row_stride, number, range, thread);
  }

  // The sums of warps are stored over the block's own tiles.
  template <int multiplying>
  SINTER_DEVICE void store_sums(const float (&first)[Sizes::width / 2],
                                const float (&second)[Sizes::value_width / 2]) const {
    auto* const of_first = reinterpret_cast<float*>(own_first());
    auto* const of_second = reinterpret_cast<float*>(own_second());
    bar_sync(kSumsBarrier, multiplying);  // nobody reads the tiles any more
    if constexpr (Config::kSumsFirst) sum_rows_of_warp<T>(first, of_first);
    if constexpr (Config::kSumsSecond) sum_rows_of_warp<T>(second, of_second);
    bar_sync(kSumsBarrier, multiplying);
    const long long row = own_row0() + static_cast<int>(threadIdx.x) / 128 * 64;
    if (row >= own_rows()) return;
    const long long head = (sequence_ * own_rows() + row) / 64 * own_heads() + head_;
    if constexpr (Config::kSumsFirst)
      store_sums_of_warps<Config::kWidth, Sizes::width>(of_first,
                                                        in_.first_sums + head * Config::kWidth);
    if constexpr (Config::kSumsSecond)
      store_sums_of_warps<Config::kValueWidth, Sizes::value_width>(
          of_second, in_.second_sums + head * Config::kValueWidth);
  }

  template <int width, int count, typename Result>
  SINTER_DEVICE void store_rows(const float (&sums)[count], int row0, const Result& result) const {
    constexpr int chunks = (width + 7) / 8;
    take_chunks<T, chunks>(sums, [&](int half, int chunk, const Chunk(&values)[1]) {
      const int row = row0 + 8 * half;
      if (!is_there(row)) return;
      const long long at =
          ((sequence_ * own_rows() + own_row0() + row) * own_heads() + head_) * width + 8 * chunk;
      if constexpr (width % 8 == 0 && Result::kChunks) {
        store_chunk(result(at), values[0]);
      } else {
#pragma unroll
        for (int e = 0; e < 8; ++e)
          if (8 * chunk + e < width) sinter::store(result(at + e), values[0][e]);
      }
    });
  }

  const GradientOperands<Config>& in_;
  unsigned char* shared_;
  bool has_rows_;
  int tile_ = 0, head_ = 0, sequence_ = 0;
};

// The tiles of other rows that a block walks, in the order of the sums.
template <typename Config>
class GradientWalk {
  static constexpr bool kOfKeys = Config::kOfKeys;

 public:
  // At the first tile, if there is one. All lanes of a warp make it together.
  SINTER_DEVICE GradientWalk(const GradientBlock<Config>& block, const SeenTokens& seen)
      : seen_(&seen), per_flag_(kOfKeys ? block.per_flag() : 1), end_(block.other_tiles()) {
    if constexpr (!kOfKeys) {
      const RowRange range = block.find_seen_keys();
      end_ = range.high < range.low ? 0 : range.high / Config::kOtherRows + 1;
      begin_ = end_ == 0 ? 0 : range.low / Config::kOtherRows;
    }
    tile_ = begin_;
    skip();
  }

  SINTER_DEVICE bool has() const { return turn_ < GradientBlock<Config>::kTurns; }
  SINTER_DEVICE void advance() {
    ++tile_;
    skip();
  }
  SINTER_DEVICE int turn() const { return turn_; }
  SINTER_DEVICE int tile() const { return tile_; }
  // Tokens may not see all keys of this tile and the block: of a block of keys.
  SINTER_DEVICE bool hides_keys() const {
    return seen_->flags[tile_ / per_flag_] != SeenTokens::kAll;
  }

 private:
  SINTER_DEVICE void skip() {
    if constexpr (kOfKeys)
      while (tile_ < end_ && seen_->flags[tile_ / per_flag_] == SeenTokens::kNone) ++tile_;
    if (tile_ < end_) return;
    tile_ = begin_;
    ++turn_;
    if constexpr (kOfKeys) {
      if (turn_ >= GradientBlock<Config>::kTurns) return;
      while (tile_ < end_ && seen_->flags[tile_ / per_flag_] == SeenTokens::kNone) ++tile_;
      if (tile_ >= end_) turn_ = GradientBlock<Config>::kTurns;  // no token sees the keys
    }
  }

  const SeenTokens* seen_;
  int per_flag_, begin_ = 0, end_, tile_ = 0, turn_ = 0;
};

}  // namespace sinter
