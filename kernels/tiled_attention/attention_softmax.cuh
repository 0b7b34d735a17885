// The softmax of tiled_attention: a lane has two rows of a warp's 16, row0 + lane / 4 and 8 more,
// and of each 8 keys two, as a product of tensor cores leaves them.
#pragma once

#include "kernels/tiled_attention/attention_mask.cuh"
#include "kernels/tiled_attention/attention_segments.cuh"

namespace sinter {

template <typename Config>
class AttentionSoftmax {
  using Sizes = TiledSizes<Config>;
  using T = typename Config::Element;
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  using Mask = typename Config::Mask;

  // `upper` and `lower`: the keys that the lane's two rows see; the mask and the dropout of both.
  SINTER_DEVICE AttentionSoftmax(const SeenKeys<Config>& upper, const SeenKeys<Config>& lower,
                                 const LaneMask<Config>& lane_mask,
                                 const LaneDropout<Config>& lane_dropout)
      : low_{upper.low, lower.low},
        count_{upper.count, lower.count},
        segments_(upper, lower),
        mask_(lane_mask),
        dropout_(lane_dropout) {
    all_low_ = low_[0] > low_[1] ? low_[0] : low_[1];
    const int end0 = seen_end(0), end1 = seen_end(1);
    all_end_ = end0 < end1 ? end0 : end1;
#pragma unroll
    for (int stride = 4; stride < 32; stride *= 2) {
      const int low = __shfl_xor_sync(kAll, all_low_, stride);
      const int end = __shfl_xor_sync(kAll, all_end_, stride);
      all_low_ = low > all_low_ ? low : all_low_;
      all_end_ = end < all_end_ ? end : all_end_;
    }
  }

  // Before a tile of keys: whether one of the warp's rows has come to the end of a segment. Then
  // the caller joins the sums of the lane's rows by ended(). All lanes of a warp return the same.
  SINTER_DEVICE bool end_segments(int tile) {
    if (!segments_.move_to(tile)) return false;
    join_states();
    return true;
  }
  // The state of all keys, at the end; true: the caller joins the sums by ended().
  SINTER_DEVICE bool end_keys() {
    if (!segments_.have_states()) return false;
    segments_.end_all();
    join_states();
    return true;
  }
  SINTER_DEVICE const EndedSegments& ended() const { return segments_.ended; }

  // Turns a tile's dot products into logits and raises m, a row's largest logit, to the tile's
  // largest. True: the caller multiplies the sums of the lane's rows by scale(). All lanes of a
  // warp return the same.
  SINTER_DEVICE bool update_max(float (&dots)[Sizes::keys / 2], int tile) {
    const int begin = tile * Sizes::keys;
    if constexpr (LaneDropout<Config>::kIsThere) begin_ = begin;
    mask_.apply(dots, begin);
    if (begin < all_low_ || begin + Sizes::keys > all_end_) hide_unseen(dots, begin);
    float largest[2];
    find_largest(dots, largest);
    if (!__any_sync(kAll, largest[0] != largest_[0] || largest[1] != largest_[1])) return false;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      scale_[half] = attention_scale(largest_[half], largest[half], Config::kFactor);
      largest_[half] = largest[half];
      shift_[half] = attention_shift(largest[half], Config::kFactor, Mask::kAdds);
#pragma unroll
      for (int e = 0; e < 2; ++e) weights_[half][e] = math::mul(weights_[half][e], scale_[half]);
    }
    return true;
  }
  SINTER_DEVICE const float (&scale() const)[2] { return scale_; }

  // Turns the logits that update_max() left into weights, as fragments of an operand A: words[4 s
  // ..] hold 16 keys.
  SINTER_DEVICE void exponentiate(const float (&logits)[Sizes::keys / 2],
                                  unsigned (&words)[Sizes::keys / 4]) {
#pragma unroll
    for (int i = 0; i < Sizes::keys / 4; ++i) {
      const int half = i % 2;
      float p[2];
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        p[e] = attention_weight(logits[2 * i + e], shift_[half], Config::kFactor, Mask::kAdds);
        weights_[half][e] = math::add(weights_[half][e], p[e]);
        if (!dropout_.keeps(begin_, half, i / 2, e)) p[e] = 0.0f;
      }
      words[i] = pack(static_cast<const T*>(nullptr), p[0], p[1]);
    }
  }

  // Finds one over the sum of each row's weights, and its log-sum.
  SINTER_DEVICE void finish(AttentionEnds& ends) {
    ends.joins = end_keys();
    ends.ended = segments_.ended;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float weights = ends.joins ? segments_.weights[half] : sum_of_weights(half);
      ends.factors[half] = attention_inverse(weights, Config::kEmptyZero);
      if constexpr (LaneDropout<Config>::kIsThere)
        ends.factors[half] = math::mul(ends.factors[half], dropout_scale(Mask::kDropout));
      if constexpr (kLogSumOf<Config>) {
        const float shift =
            ends.joins ? attention_shift(segments_.largest[half], Config::kFactor, Mask::kAdds)
                       : shift_[half];
        ends.log_sums[half] = attention_log_sum(weights, shift, Config::kFactor, Mask::kAdds);
      }
    }
  }

  template <int count>
  static SINTER_DEVICE void scale_rows(float (&sums)[count], const float (&by)[2]) {
#pragma unroll
    for (int i = 0; i < count; ++i) sums[i] = math::mul(sums[i], by[i / 2 % 2]);
  }

 private:
  // The sum l of the segment's keys; four lanes share a row.
  SINTER_DEVICE float sum_of_weights(int half) const {
    float weights = math::add(weights_[half][0], weights_[half][1]);
    weights = math::add(weights, __shfl_xor_sync(kAll, weights, 1));
    return math::add(weights, __shfl_xor_sync(kAll, weights, 2));
  }
  // Joins m and l of the segments that have ended to those before, and begins them anew.
  SINTER_DEVICE void join_states() {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float weights = sum_of_weights(half);
      if (!segments_.ended.rows[half]) continue;
      segments_.join(half, largest_[half], weights, Config::kFactor);
      largest_[half] = -math::infinity();
      weights_[half][0] = weights_[half][1] = 0.0f;
    }
  }
  SINTER_DEVICE int seen_end(int half) const { return low_[half] + static_cast<int>(count_[half]); }

  // Keys that a row does not see have the logit -inf, whatever the mask has for them.
  SINTER_DEVICE void hide_unseen(float (&logits)[Sizes::keys / 2], int begin) const {
    const int key0 = begin + lane_key(0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const unsigned after_low = static_cast<unsigned>(key0 - low_[half]);
#pragma unroll
      for (int i = 0; i < Sizes::keys / 4; ++i)
        if (after_low + static_cast<unsigned>(tile_key(i)) >= count_[half] &&
            !is_of_sink<Config>(key0 + tile_key(i), low_[half]))
          logits[i / 2 * 4 + 2 * half + i % 2] = -math::infinity();
    }
  }
  // The largest logit of each row so far. Four lanes share a row's keys, in four chains a row.
  SINTER_DEVICE void find_largest(const float (&logits)[Sizes::keys / 2],
                                  float (&largest)[2]) const {
    float chains[8];
#pragma unroll
    for (int c = 0; c < 8; ++c) chains[c] = logits[c];
#pragma unroll
    for (int i = 8; i < Sizes::keys / 2; ++i)
      chains[i % 8] = math::maximum(chains[i % 8], logits[i]);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& x = largest[half];
      x = math::maximum(math::maximum(chains[2 * half], chains[2 * half + 1]),
                        math::maximum(chains[2 * half + 4], chains[2 * half + 5]));
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 1));
      x = math::maximum(x, __shfl_xor_sync(kAll, x, 2));
      x = math::maximum(x, largest_[half]);
    }
  }

  int low_[2];
  unsigned count_[2];
  RowSegments<Config> segments_;
  LaneMask<Config> mask_;
  LaneDropout<Config> dropout_;
  int begin_ = 0;          // the tile's first key, for the dropout
  int all_low_, all_end_;  // keys that all rows of the warp see
  float largest_[2] = {-math::infinity(), -math::infinity()};
  float shift_[2] = {}, scale_[2] = {};
  float weights_[2][2] = {};  // of even and of odd keys
};

}  // namespace sinter
