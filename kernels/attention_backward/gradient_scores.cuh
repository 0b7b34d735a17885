// From dot products to what is multiplied next, in registers: P and dS of a lane's two rows, `row`
// and 8 more of the block, as a product of tensor cores leaves them, and of each 8 other rows two.
#pragma once

#include "kernels/attention_backward/gradient_tiles.cuh"

namespace sinter {

// A tile of other rows, as a lane needs it.
struct GradientTile {
  int turn, begin;  // its first row
  bool hides_keys;  // tokens may not see all keys of the tile and the block
};

template <typename Config>
class GradientScores {
  using Sizes = GradientSizes<Config>;
  using T = typename Config::Element;
  using Mask = typename Config::Mask;
  static constexpr bool kOfKeys = Config::kOfKeys;
  static constexpr unsigned kLanes = 0xffffffffu;
  static constexpr int kCount = Sizes::other / 2;  // of a lane's elements of a tile
  using Tokens = TokensOfTile<Config>;
  static constexpr int kDropout = Mask::kDropout;

 public:
  // Which of a lane's weights of a tile a dropout keeps, a bit each.
  struct Kept {
    static constexpr int kWords = kDropout == 0 ? 1 : (kCount + 31) / 32;
    unsigned words[kWords];
  };

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

  // The tile that the walk is at.
  SINTER_DEVICE GradientTile tile_of(const GradientWalk<Config>& walk) const {
    const int begin = walk.tile() * Sizes::other;
    return {walk.turn(), begin,
            kOfKeys ? walk.hides_keys() : begin < all_low_ || begin + Sizes::other > all_end_};
  }

  // Called before a tile's products, whose sums leave few registers.
  SINTER_DEVICE Kept find_kept(const GradientTile& tile, const Tokens& tokens) const {
    Kept kept = {};
    if constexpr (kDropout != 0) {
      each([&](int i, int half, int column) {
        kept.words[i / 32] |= (keeps(tile, tokens, i, half, column) ? 1u : 0u) << i % 32;
      });
#pragma unroll
      for (unsigned& word : kept.words) asm volatile("" : "+r"(word));  // here, and not later
    }
    return kept;
  }

  // Turns dot products into the factors of dP - delta, which are probabilities where there is no
  // soft cap; `words`, where the second gradient is computed: probabilities, as pack_words() leaves
  // them. `tokens`: of the tile, for a block of keys.
  SINTER_DEVICE void find_probabilities(float (&dots)[kCount], unsigned (&words)[kCount / 2],
                                        const GradientTile& tile, const Tokens& tokens,
                                        const Kept& kept) const {
    if (tile.hides_keys)
      find_probabilities<true>(dots, words, tile, tokens, kept);
    else
      find_probabilities<false>(dots, words, tile, tokens, kept);
  }
  // Turns these factors and dP into dS.
  SINTER_DEVICE void find_logit_gradients(float (&probabilities)[kCount],
                                          const float (&products)[kCount], const GradientTile& tile,
                                          const Tokens& tokens, const Kept& kept) const {
    if (tile.hides_keys)
      find_logit_gradients<true>(probabilities, products, tile, tokens, kept);
    else
      find_logit_gradients<false>(probabilities, products, tile, tokens, kept);
  }
  // As fragments of an operand A.
  SINTER_DEVICE static void pack_words(unsigned (&words)[kCount / 2],
                                       const float (&values)[kCount]) {
#pragma unroll
    for (int i = 0; i < kCount / 2; ++i)
      words[i] = pack(static_cast<const T*>(nullptr), values[2 * i], values[2 * i + 1]);
  }

 private:
  template <bool hides>
  SINTER_DEVICE void find_probabilities(float (&dots)[kCount], unsigned (&words)[kCount / 2],
                                        const GradientTile& tile, const Tokens& tokens,
                                        const Kept& kept) const {
    float even = 0.0f;  // of two neighbours
    each([&](int i, int half, int column) {
      const float tanh = attention_tanh(dots[i], Config::kScale, Config::kSoftcap);
      const float own = logit(dots[i], tanh, tile, column, half);
      const float shift = kOfKeys ? tokens.shift[column] : own_[half].shift;
      float probability = attention_probability(own, shift, Config::kFactor);
      // Also where the shift is NaN.
      if (hides && !sees(tile, tokens, half, column)) probability = 0.0f;
      dots[i] = Config::kSoftcap == 0.0f ? probability : capped_probability(probability, tanh);
      if constexpr (Config::kSecond) {
        if (!is_kept(kept, i)) probability = 0.0f;
        if (i % 2 == 0)
          even = probability;
        else
          words[i / 2] = pack(static_cast<const T*>(nullptr), even, probability);
      }
    });
  }
  template <bool hides>
  SINTER_DEVICE void find_logit_gradients(float (&probabilities)[kCount],
                                          const float (&products)[kCount], const GradientTile& tile,
                                          const Tokens& tokens, const Kept& kept) const {
    each([&](int i, int half, int column) {
      const float delta = kOfKeys ? tokens.delta[column] : own_[half].delta;
      const float difference = difference_of(products[i], delta, is_kept(kept, i));
      probabilities[i] = logit_gradient(probabilities[i], difference, Mask::kIsThere);
      if (hides && !sees(tile, tokens, half, column)) probabilities[i] = 0.0f;
    });
  }

  // Calls use(i, half, column) for each element of a lane: `column` of the tile's rows.
  template <typename Use>
  SINTER_DEVICE static void each(Use use) {
    const int lane = 2 * (static_cast<int>(threadIdx.x) % 4);
#pragma unroll
    for (int eight = 0; eight < kCount / 4; ++eight)
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int e = 0; e < 2; ++e) use(4 * eight + 2 * half + e, half, 8 * eight + lane + e);
  }

  SINTER_DEVICE int key_of(const GradientTile& tile, int half, int column) const {
    return kOfKeys ? block_.own_row0() + row_ + 8 * half : tile.begin + column;
  }
  SINTER_DEVICE bool sees(const GradientTile& tile, const Tokens& tokens, int half,
                          int column) const {
    const int low = kOfKeys ? tokens.low[column] : own_[half].low;
    const unsigned count = kOfKeys ? tokens.count[column] : own_[half].count;
    return static_cast<unsigned>(key_of(tile, half, column) - low) < count;
  }

  SINTER_DEVICE static bool is_kept(const Kept& kept, int i) {
    return kDropout == 0 || (kept.words[i / 32] >> i % 32 & 1u) != 0;
  }
  // Whether a dropout keeps element i of a lane. Rows 8 apart, own or others, share a pair's word.
  SINTER_DEVICE bool keeps(const GradientTile& tile, const Tokens& tokens, int i, int half,
                           int column) const {
    if constexpr (kOfKeys) {
      const int pair = dropout_pair(block_.own_row0() + row_);
      return dropout_keeps(dropout_word(tokens.dropout_row[column], pair), half != 0, kDropout);
    } else {
      const int lane = 2 * (static_cast<int>(threadIdx.x) % 4);
      const int pair = tile.begin / 2 + lane + i / 8 * 8 + i % 2;
      return dropout_keeps(dropout_word(own_[half].dropout_row, pair), i / 4 % 2 != 0, kDropout);
    }
  }
  // dP - delta.
  SINTER_DEVICE static float difference_of(float product, float delta, bool keeps) {
    if constexpr (kDropout == 0) return math::sub(product, delta);
    return dropped_difference(keeps, product, dropout_scale(kDropout), delta);
  }

  SINTER_DEVICE float logit(float dot, float tanh, const GradientTile& tile, int column,
                            int half) const {
    if constexpr (!Mask::kIsThere) {
      return capped_logit(dot, tanh, Config::kScale, Config::kSoftcap);
    } else {
      const long long token = kOfKeys ? tile.begin + column : block_.own_row0() + row_ + 8 * half;
      const int key = key_of(tile, half, column), last = block_.last_key();
      return capped_logit(dot, tanh, Config::kScale, Config::kSoftcap,
                          block_.mask_of(tile.turn, token)[key < last ? key : last]);
    }
  }

  const GradientBlock<Config>& block_;
  int row_;
  GradientToken own_[2];
  int all_low_ = 0, all_end_ = 0;  // keys that all rows of the warp see
};

}  // namespace sinter
