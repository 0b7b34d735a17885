// From dot products to what is multiplied next, in registers: P and dS of a lane's two rows, `row`
// and 8 more of the block, as a product of tensor cores leaves them, and of each 8 other rows two.
#pragma once

#include "kernels/attention_backward/gradient_tiles.cuh"

namespace sinter {

template <typename Config>
class GradientScores {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  using Mask = typename Config::Mask;
  static constexpr bool kOfKeys = Config::kOfKeys;
  static constexpr unsigned kLanes = 0xffffffffu;
  static constexpr int kCount = Sizes::other / 2;  // of a lane's elements of a tile

 public:
  // Made by all lanes of a warp together.
  SINTER_DEVICE GradientScores(const GradientBlock<Config>& block, int row)
      : block_(block), row_(row) {
    if constexpr (kOfKeys) return;
    int low = 0, end = 0x7fffffff;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      own_[half] = block.token(0, block.own_row0() + row + 8 * half);
      const int own_end = own_[half].low + static_cast<int>(own_[half].count);
      low = own_[half].low > low ? own_[half].low : low;
      end = own_end < end ? own_end : end;
    }
#pragma unroll
    for (int stride = 4; stride < 32; stride *= 2) {
      const int other_low = __shfl_xor_sync(kLanes, low, stride);
      const int other_end = __shfl_xor_sync(kLanes, end, stride);
      low = other_low > low ? other_low : low;
      end = other_end < end ? other_end : end;
    }
    all_low_ = low;
    all_end_ = end;
  }

  // Turns dot products into probabilities. `tokens`: of the tile, for a block of keys.
  SINTER_DEVICE void find_probabilities(float (&dots)[kCount], const GradientWalk<Config>& walk,
                                        const GradientToken* tokens) const {
    const int begin = walk.tile() * Sizes::other;
    const bool hides =
        kOfKeys ? walk.hides_keys() : begin < all_low_ || begin + Sizes::other > all_end_;
    each(tokens, [&](int i, int half, int column, const GradientToken& token) {
      const int key = kOfKeys ? block_.own_row0() + row_ + 8 * half : begin + column;
      const float own = logit(dots[i], walk, begin + column, half, key);
      dots[i] = attention_probability(own, token.shift, Config::kFactor);
      if (hides && !token.sees(key)) dots[i] = 0.0f;  // also where the shift is NaN
    });
  }
  // Turns probabilities and dP into dS.
  SINTER_DEVICE void find_logit_gradients(float (&probabilities)[kCount],
                                          const float (&products)[kCount],
                                          const GradientToken* tokens) const {
    each(tokens, [&](int i, int, int, const GradientToken& token) {
      probabilities[i] = logit_gradient(probabilities[i], products[i], token.delta);
    });
  }
  // As fragments of an operand A.
  SINTER_DEVICE static void pack_words(unsigned (&words)[kCount / 2],
                                       const float (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i)
      words[i] = pack(static_cast<const T*>(nullptr), values[2 * i], values[2 * i + 1]);
  }

 private:
  // Calls use(i, half, column, token) for each element of a lane.
  template <typename Use>
  SINTER_DEVICE void each(const GradientToken* tokens, Use use) const {
    const int lane = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int eight = 0; eight < kCount / 4; ++eight)
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int column = 8 * eight + lane + e;
        if constexpr (kOfKeys) {
          const GradientToken token = tokens[column];
          use(4 * eight + e, 0, column, token);
          use(4 * eight + 2 + e, 1, column, token);
        } else {
          use(4 * eight + e, 0, column, own_[0]);
          use(4 * eight + 2 + e, 1, column, own_[1]);
        }
      }
  }

  // `other`: the other row of the element.
  SINTER_DEVICE float logit(float dot, const GradientWalk<Config>& walk, int other, int half,
                            int key) const {
    if constexpr (!Mask::kIsThere) {
      return attention_logit(dot, Config::kScale, 0.0f);
    } else {
      const long long token = kOfKeys ? other : block_.own_row0() + row_ + 8 * half;
      const int last = block_.last_key();
      return attention_logit(dot, Config::kScale, 0.0f,
                             block_.mask_of(walk.turn(), token)[key < last ? key : last]);
    }
  }

  const GradientBlock<Config>& block_;
  int row_;
  GradientToken own_[2];
  int all_low_ = 0, all_end_ = 0;  // keys that all rows of the warp see
};

}  // namespace sinter
