// tiled_attention of few tokens; order.h states its order of operations.
//
// A block has one token and query heads of one key head, which are the rows of its products, and
// walks segments of keys. Four warps load tiles and share a tile: each computes the dot products
// with a quarter of its keys and a quarter of the weighted sums. One more warp adds the weights.
// The blocks of a cluster walk neighbouring segments at the same time, a round, and each joins the
// states of a part of the elements.
//
// The tiles come through the slots of a ring: keys and values of one tile, then of the next.
// A slot is filled again as soon as its tile was multiplied. Barriers of the block, |:
//
//   warps 0 .. 3  load values 1, dots, their largest | weights | load keys 2, values | load ...
//   warp 4                                           |         | l                   |
//
// (One warp that loads is no faster: one H200, a token after 256 of 32 heads of 128 elements 14.3
// us, with loads by all four 6.8.)
//
// Config: attention.cuh, with kRows = kHeadRows, and
//   kTile     query heads of a block, at most kHeadRows
//   kStages   slots of the ring
#pragma once

#include "kernels/isa/cluster.cuh"
#include "kernels/tile/sums/mma.cuh"
#include "kernels/tiled_attention/attention_tiles.cuh"
#include "kernels/tiled_attention/layout.h"

namespace sinter {

// Shared memory by which the threads of a block, and the blocks of a cluster, hand values over.
// Rows are query heads.
template <typename Config, int blocks>
struct FewShared {
  static constexpr int elements = Config::kTile * Config::kValueWidth;
  static constexpr int owned = (elements + blocks - 1) / blocks;  // elements that a block joins
  struct State {                                                  // of a segment
    float sums[owned], largest[Config::kTile], weights[Config::kTile];
  };
  float largest[kHeadWarps][kHeadRows];                        // of the warps' logits
  float weights[Config::kTile][TiledSizes<Config>::keys + 1];  // of a tile
  float segment_largest[kHeadRows], segment_weights[kHeadRows];
  State states[2][blocks];  // of two rounds
};

// The tiles of keys that a block walks: in each round the tiles of one segment.
template <typename Config>
class FewTiles {
  static constexpr int kKeys = TiledSizes<Config>::keys, kTiles = Config::kSegment / kKeys;

 public:
  SINTER_DEVICE FewTiles() {}
  // `rank`: of the block among `blocks`.
  SINTER_DEVICE FewTiles(AttentionRange seen, int first, int rank, int blocks)
      : low_(static_cast<int>(seen.low)),
        begin_((first > 0 ? first : 0) / kKeys),
        rank_(rank),
        blocks_(blocks) {
    const int last = seen.count > 0 ? static_cast<int>(seen.low + seen.count - 1) / kKeys : 0;
    first_tile_ = kSinkOf<Config> != 0 ? 0 : low_ / kKeys;
    end_ = last + 1;
    last_segment_ = attention_segment(last, first, kKeys, kTiles);
    segment_ = attention_segment(first_tile_, first, kKeys, kTiles) + rank;
    enter_segment();
  }
  SINTER_DEVICE bool has_round() const { return segment_ - rank_ <= last_segment_; }
  SINTER_DEVICE bool has_tile() const { return tile_ < tile_end_; }
  SINTER_DEVICE int tile() const { return tile_; }
  SINTER_DEVICE void next_tile() { tile_ = without_gap(tile_ + 1); }
  SINTER_DEVICE void next_round() {
    segment_ += blocks_;
    enter_segment();
  }
  // Moves on to the next round with a tile, if there is one.
  SINTER_DEVICE void settle() {
    while (!has_tile() && has_round()) next_round();
  }

 private:
  SINTER_DEVICE int without_gap(int tile) const {
    return after_gap<Config>(tile * kKeys, low_, kKeys) / kKeys;
  }
  SINTER_DEVICE void enter_segment() {
    const int from = segment_ < 0 ? 0 : begin_ + segment_ * kTiles;
    const int to = segment_ < 0 ? begin_ : from + kTiles;
    tile_end_ = to < end_ ? to : end_;
    tile_ = without_gap(from > first_tile_ ? from : first_tile_);
  }

  int low_, begin_, rank_, blocks_;
  int first_tile_, end_, last_segment_;    // tiles and segments in which keys are seen
  int segment_ = 0, tile_ = 0, tile_end_;  // of the block
};

// Blocks: [token][heads / kTile][split], where the splits are a cluster, or `blocks` is 1. start()
// loads the first tile of keys, run() the rest. A kernel that may read the caches before it waits,
// all but the rows that are being appended, calls start_early() instead, and waits between the two.
template <typename Config, int blocks>
class FewTokensAttention {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  using Mask = typename Config::Mask;
  using Shared = FewShared<Config, blocks>;
  static constexpr unsigned kAll = 0xffffffffu;
  static constexpr int kKeys = Sizes::keys, kColumns = Sizes::value_width;
  // Parts of 16 keys, and of 16 elements of values, of a warp: every fourth one.
  static_assert(sizeof(Shared) ==
                    few_handed_bytes(kKeys, Config::kTile, Config::kValueWidth, blocks),
                "the schedule knows its bytes");
  static_assert(kKeys % (16 * kHeadWarps) == 0, "all warps have as many parts of keys");
  static constexpr int kKeyParts = kKeys / 16 / kHeadWarps;
  static constexpr int kColumnParts = (kColumns / 16 + kHeadWarps - 1) / kHeadWarps;
  static constexpr int kOwnedOfThread = (Shared::owned + kFewThreads - 1) / kFewThreads;
  static constexpr int kSlots = Config::kStages, kChains = (Config::kTile * 8 + 31) / 32;
  static constexpr int kSummingWarp = kHeadWarps;

 public:
  using Operands = AttentionOperands<Config>;

  // `tiles`: few_tile_bytes() of shared memory, and Shared behind them.
  SINTER_DEVICE FewTokensAttention(const Operands& in, unsigned char* tiles)
      : in_(in),
        tiles_(tiles),
        shared_(*reinterpret_cast<Shared*>(
            tiles + few_tile_bytes(kKeys, Sizes::width, Sizes::value_width, kSlots))) {
    constexpr int of_token = Config::kHeads / Config::kTile;
    rank_ = static_cast<int>(blockIdx.x) % blocks;
    token_ = blockIdx.x / (blocks * of_token);
    head0_ = static_cast<int>(blockIdx.x / blocks % of_token) * Config::kTile;
    sequence_ = Config::kSequences ? token_ / in.tokens : 0;
#pragma unroll
    for (float& largest : joined_largest_) largest = -math::infinity();
    if constexpr (blocks > 1) barrier_cluster_arrive_relaxed();
  }

  SINTER_DEVICE void start() {
    find_keys();
    fill();
  }
  // `tokens` of the call: their rows are being appended.
  SINTER_DEVICE void start_early(int tokens) {
    find_keys();
    if (warp() == kSummingWarp) return;
    while (loaded_ < kSlots - 1 && !is_appended(ahead_.tile(), tokens)) load_half();
  }

  template <typename Query, typename Result>
  SINTER_DEVICE void run(const Query& q, const Result& out) {
    fill();
    if (warp() < kHeadWarps)
      load_dense<T, kHeadRows, Config::kWidth, kHeadThreads>(
          queries(), q,
          [&](int row) { return (token_ * Config::kHeads + head_of(row)) * Config::kWidth; },
          static_cast<int>(threadIdx.x));
    for (int round = 0; walk_.has_round(); ++round) {
      walk_segment();
      if constexpr (blocks > 1)
        if (round == 0) barrier_cluster_wait();  // its blocks have begun, their memory is there
      give_state(round % 2);
      if constexpr (blocks > 1) {
        barrier_cluster_arrive();
        barrier_cluster_wait();
      } else {
        __syncthreads();
      }
      join_states(round % 2);
    }
    cp_async_wait_group<0>();
    store(out);
  }

 private:
  SINTER_DEVICE unsigned char* slot(int half) const {
    return tiles_ + half % kSlots * few_slot_bytes(kKeys, Sizes::width, Sizes::value_width);
  }
  SINTER_DEVICE unsigned char* keys() const { return slot(2 * walked_); }
  SINTER_DEVICE unsigned char* values() const { return slot(2 * walked_ + 1); }
  SINTER_DEVICE unsigned char* queries() const {
    return tiles_ + kSlots * few_slot_bytes(kKeys, Sizes::width, Sizes::value_width);
  }
  SINTER_DEVICE unsigned char* weights() const { return queries() + Sizes::query_bytes; }
  SINTER_DEVICE static int warp() { return static_cast<int>(threadIdx.x) / 32; }
  SINTER_DEVICE static int lane() { return static_cast<int>(threadIdx.x) % 32; }
  // The row of element i of a part's sums, and its column in the part (mma.cuh).
  SINTER_DEVICE static int row_of(int i) { return lane() / 4 + i / 2 % 2 * 8; }
  SINTER_DEVICE static int column_of(int i) { return i / 4 * 8 + lane() % 4 * 2 + i % 2; }
  SINTER_DEVICE static int first_of_part(int part) { return 16 * (warp() + kHeadWarps * part); }
  // All warps have as many parts, unless the last one is beyond the elements of values.
  SINTER_DEVICE static bool has_columns(int part) {
    return kColumns % (16 * kHeadWarps) == 0 || first_of_part(part) < kColumns;
  }
  // Rows beyond the block's heads compute what nobody asks for.
  SINTER_DEVICE int head_of(int row) const {
    return head0_ + (row < Config::kTile ? row : Config::kTile - 1);
  }

  SINTER_DEVICE void find_keys() {
    const int first = in_.first(token_);
    seen_ = visible_keys<Config>(first, in_.last(token_), in_.cache_rows);
    walk_ = ahead_ = FewTiles<Config>(seen_, first, rank_, blocks);
    ahead_.settle();
  }
  // The tile has a row that one of the call's tokens appends.
  SINTER_DEVICE bool is_appended(int tile, int tokens) const {
    bool found = false;
    for (int t = lane(); t < tokens; t += 32) found |= in_.last(t) / kKeys == tile;
    return __any_sync(kAll, found);
  }
  SINTER_DEVICE bool sees(int row) const {
    const auto after_low = static_cast<unsigned>(row - static_cast<int>(seen_.low));
    return after_low < static_cast<unsigned>(seen_.count) ||
           is_of_sink<Config>(row, static_cast<int>(seen_.low));
  }
  SINTER_DEVICE bool sees_all(int tile) const {
    const auto low = static_cast<int>(seen_.low);
    return tile * kKeys >= low && (tile + 1) * kKeys <= low + static_cast<int>(seen_.count);
  }
  // The rows of a tile from the first to the last that the token sees.
  SINTER_DEVICE RowRange rows_in(int tile) const {
    const auto low = static_cast<int>(seen_.low);
    const int high = low + static_cast<int>(seen_.count) - 1;
    if (!is_of_sink<Config>(tile * kKeys, low)) return {low, high};
    return {0, (tile + 1) * kKeys <= low ? kSinkOf<Config> - 1 : high};
  }
  // Loads keys, then values, of the next tile that is not loaded; an empty group of copies behind
  // the last one.
  SINTER_DEVICE void load_half() {
    unsigned char* const to = slot(loaded_);
    if (ahead_.has_tile()) {
      if (loaded_ % 2 == 0) {
        load<Config::kWidth>(to, in_.keys, ahead_.tile());
      } else {
        load<Config::kValueWidth>(to, in_.values, ahead_.tile());
        ahead_.next_tile();
        ahead_.settle();
      }
    }
    cp_async_commit_group();
    ++loaded_;
  }
  SINTER_DEVICE void fill() {
    if (warp() == kSummingWarp) return;
    while (loaded_ < kSlots - 1) load_half();
  }
  template <int width>
  SINTER_DEVICE void load(unsigned char* to, const AttentionRows<T>& rows, int tile) const {
    constexpr int group = Config::kHeads / Config::kKvHeads;
    load_cache_rows<kKeys, width, kHeadThreads, Config::kAligned>(
        to, rows.row0(sequence_, head0_ / group), rows.row_stride, tile, rows_in(tile),
        static_cast<int>(threadIdx.x));
  }

  // Computes the state of a segment.
  SINTER_DEVICE void walk_segment() {
    begin_segment();
    for (; walk_.has_tile(); walk_.next_tile(), ++walked_) {
      float logits[kKeyParts][8];
      meet_loads();  // keys and queries are there; values of the tile before are not needed
      if (warp() < kHeadWarps) {
        multiply_keys(logits);
        find_logits(logits);
      }
      __syncthreads();  // the warps' largest logits are there
      if (warp() < kHeadWarps) weigh(logits);
      meet_loads();  // weights and values are there; the keys are not needed
      if (warp() < kHeadWarps) add_values();
      if (warp() == kSummingWarp) sum_weights();
    }
    walk_.next_round();
  }
  // Waits until a half of a tile is there, and asks for the one that takes the slot of the half
  // before: all other slots are asked for.
  SINTER_DEVICE void meet_loads() {
    cp_async_wait_group<kSlots - 2>();
    __syncthreads();
    if (warp() != kSummingWarp) load_half();
  }
  SINTER_DEVICE void begin_segment() {
    largest_[0] = largest_[1] = -math::infinity();
#pragma unroll
    for (int i = 0; i < kChains; ++i) chains_[i] = 0.0f, chain_largest_[i] = -math::infinity();
#pragma unroll
    for (auto& part : sums_)
#pragma unroll
      for (float& sum : part) sum = 0.0f;
  }
  SINTER_DEVICE void multiply_keys(float (&dots)[kKeyParts][8]) const {
#pragma unroll
    for (auto& part : dots)
#pragma unroll
      for (float& dot : part) dot = 0.0f;
#pragma unroll
    for (int k = 0; k < Sizes::width; k += 16) {
      unsigned rows[4];
      ldmatrix_x4(rows, part_rows_first<kHeadRows, Sizes::width>(queries(), 0, k));
#pragma unroll
      for (int part = 0; part < kKeyParts; ++part) {
        unsigned columns[4];
        ldmatrix_x4(columns,
                    part_columns_first<kKeys, Sizes::width>(keys(), first_of_part(part), k));
        mma_m16n16k16<T>(dots[part], 0, rows, columns);
      }
    }
  }
  // Turns dot products into logits, -inf of keys that the token does not see.
  SINTER_DEVICE void find_logits(float (&dots)[kKeyParts][8]) const {
    typename Mask::Row masks[2];
    bool shown[2];
    const long long token = token_ - sequence_ * in_.tokens;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int head = head_of(lane() / 4 + 8 * half);
      masks[half] = in_.mask.row(sequence_, head, token);
      shown[half] = shows_tile(head, token);
    }
    float largest[2] = {-math::infinity(), -math::infinity()};
    const bool all = sees_all(walk_.tile());
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part)
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const int row = walk_.tile() * kKeys + first_of_part(part) + column_of(i);
        float& x = dots[part][i];
        x = shown[i / 2 % 2] && (all || sees(row)) ? logit(x, masks[i / 2 % 2], row)
                                                   : -math::infinity();
        largest[i / 2 % 2] = math::maximum(largest[i / 2 % 2], x);
      }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& x = largest[half];
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 1));
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 2));
      if (lane() % 4 == 0) shared_.largest[warp()][lane() / 4 + 8 * half] = x;
    }
  }
  // A summary of the mask shows keys of the tile to the head, or there is none.
  SINTER_DEVICE bool shows_tile(int head, long long token) const {
    if constexpr (Mask::kHasTiles)
      return in_.mask.tiles.row(sequence_, head, token / kAttentionTokenTile)[walk_.tile()];
    return true;
  }
  SINTER_DEVICE static float logit(float dot, const typename Mask::Row& mask, int row) {
    if constexpr (Mask::kIsThere)
      return attention_logit(dot, Config::kScale, Config::kSoftcap, mask[row]);
    else
      return attention_logit(dot, Config::kScale, Config::kSoftcap);
  }
  // Raises `largest`, m of a row, to the tile's; returns the factor of what was summed.
  SINTER_DEVICE float raise(float& largest, int row) const {
    const float before = largest;
#pragma unroll
    for (int w = 0; w < kHeadWarps; ++w) largest = math::maximum(largest, shared_.largest[w][row]);
    return attention_scale(before, largest, Config::kFactor);
  }
  // Gives the weights of the tile, and scales the weighted sums.
  SINTER_DEVICE void weigh(const float (&logits)[kKeyParts][8]) {
    float shift[2], scale[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      scale[half] = raise(largest_[half], lane() / 4 + 8 * half);
      shift[half] = attention_shift(largest_[half], Config::kFactor, Mask::kAdds);
    }
#pragma unroll
    for (int part = 0; part < kKeyParts; ++part)
#pragma unroll
      for (int i = 0; i < 8; i += 2) {
        const int row = row_of(i), key = first_of_part(part) + column_of(i);
        float p[2];
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          p[e] =
              attention_weight(logits[part][i + e], shift[i / 2 % 2], Config::kFactor, Mask::kAdds);
          if (row < Config::kTile) shared_.weights[row][key + e] = p[e];
        }
        *reinterpret_cast<unsigned*>(weights() + tile_offset(kHeadRows, kKeys, row, key / 8) +
                                     key % 8 * 2) =
            pack(static_cast<const T*>(nullptr), p[0], p[1]);
      }
#pragma unroll
    for (auto& part : sums_)
#pragma unroll
      for (int i = 0; i < 8; ++i) part[i] = math::mul(part[i], scale[i / 2 % 2]);
  }
  // A lane has the sums l of every eighth key of four rows.
  SINTER_DEVICE void sum_weights() {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
      const int row = chain_row(i);
      chains_[i] = math::mul(chains_[i], raise(chain_largest_[i], row));
#pragma unroll
      for (int key = 0; key < kKeys; key += 8)
        chains_[i] = math::add(chains_[i], shared_.weights[row][key + lane() % 8]);
    }
  }
  // Lanes without a row take the last head's row.
  SINTER_DEVICE static int chain_row(int i) {
    const int row = lane() / 8 + 4 * i;
    return row < Config::kTile ? row : Config::kTile - 1;
  }
  SINTER_DEVICE void add_values() {
#pragma unroll
    for (int key = 0; key < kKeys; key += 16) {
      unsigned rows[4];
      ldmatrix_x4(rows, part_rows_first<kHeadRows, kKeys>(weights(), 0, key));
#pragma unroll
      for (int part = 0; part < kColumnParts; ++part) {
        if (!has_columns(part)) break;
        unsigned columns[4];
        ldmatrix_x4_trans(columns,
                          part_rows_first<kKeys, kColumns>(values(), key, first_of_part(part)));
        mma_m16n16k16<T>(sums_[part], 0, rows, columns);
      }
    }
  }

  // Gives the state of the block's segment to the blocks that join it.
  SINTER_DEVICE void give_state(int buffer) {
    auto& state = shared_.states[buffer][rank_];
    if (warp() == kSummingWarp) find_row_states();
    if (warp() < kHeadWarps) {
#pragma unroll
      for (int part = 0; part < kColumnParts; ++part)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
          const int row = row_of(i), column = first_of_part(part) + column_of(i);
          const int element = row * Config::kValueWidth + column;
          if (row < Config::kTile && column < Config::kValueWidth)
            st_shared_cluster<blocks>(state.sums + element % Shared::owned, element / Shared::owned,
                                      sums_[part][i]);
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < blocks * Config::kTile; i += kFewThreads) {
      const int row = i % Config::kTile, to = i / Config::kTile;
      st_shared_cluster<blocks>(state.largest + row, to, shared_.segment_largest[row]);
      st_shared_cluster<blocks>(state.weights + row, to, shared_.segment_weights[row]);
    }
  }
  // m and l of the rows.
  SINTER_DEVICE void find_row_states() {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
      float weights = chains_[i];
#pragma unroll
      for (int stride = 1; stride < 8; stride *= 2)
        weights = math::add(weights, __shfl_xor_sync(kAll, weights, stride));
      if (lane() % 8 != 0) continue;
      shared_.segment_weights[chain_row(i)] = weights;
      shared_.segment_largest[chain_row(i)] = chain_largest_[i];
    }
  }
  // A thread joins every kFewThreads-th of the block's elements.
  SINTER_DEVICE void join_states(int buffer) {
#pragma unroll
    for (int j = 0; j < kOwnedOfThread; ++j) {
      const int place = static_cast<int>(threadIdx.x) + kFewThreads * j;
      if (!owns(place)) break;
      const int row = (rank_ * Shared::owned + place) / Config::kValueWidth;
      for (int s = 0; s < blocks; ++s) {
        const auto& state = shared_.states[buffer][s];
        const AttentionJoin by =
            attention_join(joined_largest_[j], state.largest[row], Config::kFactor);
        joined_weights_[j] = attention_joined(by, joined_weights_[j], state.weights[row]);
        joined_[j] = attention_joined(by, joined_[j], state.sums[place]);
        joined_largest_[j] = math::maximum(joined_largest_[j], state.largest[row]);
      }
    }
  }
  SINTER_DEVICE bool owns(int place) const {
    return place < Shared::owned && rank_ * Shared::owned + place < Shared::elements;
  }
  template <typename Result>
  SINTER_DEVICE void store(const Result& out) const {
    const long long first = (token_ * Config::kHeads + head0_) * Config::kValueWidth;
#pragma unroll
    for (int j = 0; j < kOwnedOfThread; ++j) {
      const int place = static_cast<int>(threadIdx.x) + kFewThreads * j;
      if (!owns(place)) break;
      const float by = attention_inverse(joined_weights_[j], Config::kEmptyZero);
      out.set(first + rank_ * Shared::owned + place, math::mul(joined_[j], by));
    }
  }

  const Operands& in_;
  unsigned char* tiles_;
  Shared& shared_;
  int rank_, head0_;
  long long token_, sequence_;
  AttentionRange seen_;
  FewTiles<Config> walk_;
  FewTiles<Config> ahead_;       // at the tile that is loaded next
  int loaded_ = 0, walked_ = 0;  // halves of tiles, and tiles
  // The segment's m and weighted sums, as a product has them; its m and l of rows of a lane.
  float largest_[2], sums_[kColumnParts][8];
  float chain_largest_[kChains], chains_[kChains];
  // The state of the segments so far, for each element that the thread joins.
  float joined_[kOwnedOfThread] = {}, joined_weights_[kOwnedOfThread] = {};
  float joined_largest_[kOwnedOfThread];
};

}  // namespace sinter
