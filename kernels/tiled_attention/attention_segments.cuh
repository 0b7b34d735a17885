// Segments of keys (order.h) of a lane's two rows, as attention_softmax.cuh has them, and where the
// weighted sums of the segments before are kept: in shared memory, of which each thread has a part
// of its own, and the last of them in registers, where shared memory does not hold all.
#pragma once

#include "kernels/tiled_attention/attention_tiles.cuh"

namespace sinter {

template <typename Config, bool has_segments = kHasSegments<Config>>
class RowSegments {
  static constexpr int kKeys = TiledSizes<Config>::keys;
  static constexpr int kTiles = kSegmentOf<Config> / kKeys;

 public:
  SINTER_DEVICE RowSegments(const SeenKeys<Config>& upper, const SeenKeys<Config>& lower)
      : first_{upper.first, lower.first} {}

  // True: a row of the warp is in another segment than at the tile before.
  SINTER_DEVICE bool move_to(int tile) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int segment = attention_segment(tile, first_[half], kKeys, kTiles);
      ended.rows[half] = segment != segment_[half] && segment_[half] != kNone;
      segment_[half] = segment;
    }
    return __any_sync(0xffffffffu, ended.rows[0] || ended.rows[1]);
  }
  SINTER_DEVICE void end_all() { ended.rows[0] = ended.rows[1] = true; }
  // A row of the warp has the state of a segment before this one.
  SINTER_DEVICE bool have_states() const {
    const bool has = largest[0] != -math::infinity() || largest[1] != -math::infinity();
    return __any_sync(0xffffffffu, has);
  }
  SINTER_DEVICE void join(int half, float own_largest, float own_weights, float factor) {
    ended.joins[half] = attention_join(largest[half], own_largest, factor);
    weights[half] = attention_joined(ended.joins[half], weights[half], own_weights);
    largest[half] = math::maximum(largest[half], own_largest);
  }

  EndedSegments ended = {};
  float largest[2] = {-math::infinity(), -math::infinity()}, weights[2] = {};  // of ended segments

 private:
  static constexpr int kNone = -2;
  int first_[2], segment_[2] = {kNone, kNone};
};
template <typename Config>
class RowSegments<Config, false> {
 public:
  SINTER_DEVICE RowSegments(const SeenKeys<Config>&, const SeenKeys<Config>&) {}
  SINTER_DEVICE bool move_to(int) { return false; }
  SINTER_DEVICE bool have_states() const { return false; }
  SINTER_DEVICE void end_all() {}
  SINTER_DEVICE void join(int, float, float, float) {}
  EndedSegments ended = {};
  float largest[2] = {}, weights[2] = {};
};

// Sums of a lane: two of its upper row, and two of the lower one.
struct alignas(16) FourSums {
  float at[4];
};

// Where joined sums begin; `tiles`: the block's tiles, of queries first.
template <typename Config>
SINTER_DEVICE unsigned char* joined_place(unsigned char* tiles) {
  using Sizes = TiledSizes<Config>;
  return tiles + Config::kQueryStages * Sizes::query_bytes +
         Config::kStages * (Sizes::key_bytes + Sizes::value_bytes);
}

// The weighted sums of a lane's two rows over the segments that have ended.
template <typename Config>
class JoinedSums {
  static constexpr int kCount = TiledSizes<Config>::value_width / 2;

 public:
  // `words`: of `threads` threads that keep sums, of which this is number `thread`.
  SINTER_DEVICE JoinedSums(unsigned char* words, int threads, int thread)
      : words_(reinterpret_cast<FourSums*>(words) + thread), threads_(threads) {}

  // Joins the sums of the rows whose segments have ended, and sets these sums to 0.
  SINTER_DEVICE void join(float (&sums)[kCount], const EndedSegments& ended) {
    change([&](int i, float& joined) {
      if (!ended.rows[i / 2 % 2]) return;
      joined = attention_joined(ended.joins[i / 2 % 2], joined, sums[i]);
      sums[i] = 0.0f;
    });
  }
  // The sums over all segments.
  SINTER_DEVICE void finish(float (&sums)[kCount], const EndedSegments& ended) {
    change([&](int i, float& joined) {
      sums[i] = attention_joined(ended.joins[i / 2 % 2], joined, sums[i]);
    });
  }

 private:
  // Words in shared memory; the rest is in registers.
  static constexpr int kWords = kCount / 4;
  static SINTER_DEVICE constexpr int shared_words() {
    if constexpr (kHasSegments<Config>) return Config::kJoinedWords;
    return 0;
  }
  static constexpr int kShared = shared_words();

  // Before the first segment of a row has ended, its sums are any: they are replaced.
  template <typename Change>
  SINTER_DEVICE void change(Change one) {
    if constexpr (kHasSegments<Config>) {
#pragma unroll
      for (int word = 0; word < kWords; ++word) {
        FourSums joined = word < kShared ? words_[word * threads_] : kept_[word];
#pragma unroll
        for (int i = 0; i < 4; ++i) one(4 * word + i, joined.at[i]);
        if (word < kShared)
          words_[word * threads_] = joined;
        else
          kept_[word] = joined;
      }
    }
  }

  FourSums* words_;
  int threads_;
  FourSums kept_[kWords] = {};  // from word kShared on
};

}  // namespace sinter
