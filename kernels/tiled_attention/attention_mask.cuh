// Logits of tiled_attention: a lane's scores and what the mask has for their keys. A lane has two
// rows of a warp's 16, and of each 8 keys two, as a product of tensor cores leaves them.
//
// Truth values are read as bits, in one of two ways. If all tokens of a head share a mask row, the
// lanes of a warp read the values of 32 neighbouring keys together, and a ballot makes a word of
// them. If each token has a row of its own, in chunks of 16 bytes, each of the four lanes that
// share a row reads the values of 32 keys and gives the word to the others. Other masks are read
// one value at a time.
#pragma once

#include "kernels/tiled_attention/attention_tiles.cuh"

namespace sinter {

// The key of element i of a row's scores in a tile, for the first of the four lanes that share the
// row, and for this lane.
SINTER_DEVICE constexpr int tile_key(int i) { return i / 2 * 8 + i % 2; }
SINTER_DEVICE int lane_key(int i) { return tile_key(i) + 2 * (static_cast<int>(threadIdx.x) % 4); }

// Bit k is byte k of the chunk; all bytes are 0 or 1.
SINTER_DEVICE unsigned truth_bits(uint4 chunk) {
  constexpr unsigned gather = 1u << 28 | 1u << 21 | 1u << 14 | 1u << 7;  // of four bytes
  return chunk.x * gather >> 28 | (chunk.y * gather >> 28) << 4 | (chunk.z * gather >> 28) << 8 |
         (chunk.w * gather >> 28) << 12;
}

// Which of a lane's weights a dropout leaves out.
template <typename Config>
class LaneDropout {
  using Sizes = TiledSizes<Config>;
  static constexpr int kThreshold = Config::Mask::kDropout;

 public:
  static constexpr bool kIsThere = kThreshold != 0;

  // Rows `row` and `row` + 8 of the block.
  SINTER_DEVICE LaneDropout(const AttentionBlock<Config>& block, int row) {
    if constexpr (kIsThere) {
      rows_[0] = block.dropout_row(row);
      rows_[1] = block.dropout_row(row + 8);
    }
  }
  // Whether a weight stays: of key e of the lane's two, of the 8 keys number `eight` of a tile
  // whose first key is `begin`.
  SINTER_DEVICE bool keeps(int begin, int half, int eight, int e) const {
    if constexpr (!kIsThere) {
      return true;
    } else {
      const int pair = begin / 2 + eight / 2 * 8 + lane_key(e);
      return dropout_keeps(dropout_word(rows_[half], pair), eight % 2 != 0, kThreshold);
    }
  }

 private:
  unsigned rows_[2];
};

template <typename Config>
class LaneMask {
  using Sizes = TiledSizes<Config>;
  using Mask = typename Config::Mask;
  static constexpr unsigned kAll = 0xffffffffu;

 public:
  // Rows `row` and `row` + 8 of the block.
  SINTER_DEVICE LaneMask(const AttentionBlock<Config>& block, int row)
      : rows_{block.mask_of(row), block.mask_of(row + 8)}, keys_(block.cache_rows()) {}

  // Turns the dot products with a tile of keys, the first of which is `begin`, into logits. Keys
  // beyond the last one have any.
  SINTER_DEVICE void apply(float (&dots)[Sizes::keys / 2], int begin) const {
    if constexpr (!Mask::kIsThere)
      apply_none(dots);
    else if constexpr (Mask::kAdds || Mask::kRows == MaskRows::own)
      apply_elements(dots, begin);
    else
      apply_bits(dots, begin);
  }

 private:
  // Rows with different masks, and words of 32 keys of a tile.
  static constexpr int kRows = Mask::kIsThere && Mask::kRows == MaskRows::shared ? 1 : 2;
  static constexpr int kWords = Sizes::keys / 32;

  // Element i of a row's scores.
  SINTER_DEVICE static float& at(float (&dots)[Sizes::keys / 2], int half, int i) {
    return dots[i / 2 * 4 + 2 * half + i % 2];
  }

  SINTER_DEVICE static void apply_none(float (&dots)[Sizes::keys / 2]) {
#pragma unroll
    for (int i = 0; i < Sizes::keys / 2; ++i)
      dots[i] = attention_logit(dots[i], Config::kScale, Config::kSoftcap);
  }

  SINTER_DEVICE void apply_elements(float (&dots)[Sizes::keys / 2], int begin) const {
    if (keys_ == 0) return;
#pragma unroll
    for (int i = 0; i < Sizes::keys / 4; ++i) {
      const int key = at_most(begin + lane_key(i), keys_ - 1);
      const auto upper = rows_[0][key], lower = kRows == 1 ? upper : rows_[1][key];
      at(dots, 0, i) = attention_logit(at(dots, 0, i), Config::kScale, Config::kSoftcap, upper);
      at(dots, 1, i) = attention_logit(at(dots, 1, i), Config::kScale, Config::kSoftcap, lower);
    }
  }

  SINTER_DEVICE void apply_bits(float (&dots)[Sizes::keys / 2], int begin) const {
    unsigned words[kRows][kWords];
    if constexpr (kRows == 1)
      read_together(words[0], begin);
    else
      read_chunks(words, begin);
    unsigned seen = kAll;
#pragma unroll
    for (int i = 0; i < kRows * kWords; ++i) seen &= words[i / kWords][i % kWords];
    if (!__any_sync(kAll, seen != kAll)) return apply_none(dots);
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int i = 0; i < Sizes::keys / 4; ++i) {
        const unsigned word = words[half % kRows][tile_key(i) / 32] >> lane_key(0);
        at(dots, half, i) = attention_logit(at(dots, half, i), Config::kScale, Config::kSoftcap,
                                            (word >> tile_key(i) % 32 & 1u) != 0);
      }
  }
  // Bit k of word w: key 32 w + k of the tile. Keys beyond the last one are true.
  SINTER_DEVICE void read_together(unsigned (&words)[kWords], int begin) const {
#pragma unroll
    for (int w = 0; w < kWords; ++w) {
      const int key = begin + 32 * w + static_cast<int>(threadIdx.x) % 32;
      words[w] = __ballot_sync(kAll, key >= keys_ || rows_[0][key]);
    }
  }
  SINTER_DEVICE void read_chunks(unsigned (&words)[kRows][kWords], int begin) const {
    const int lane = static_cast<int>(threadIdx.x) % 32, own = lane % 4;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int key = begin + 32 * own;
      const unsigned word =
          own < kWords ? read_chunk(half, key) | read_chunk(half, key + 16) << 16 : 0u;
#pragma unroll
      for (int w = 0; w < kWords; ++w) words[half][w] = __shfl_sync(kAll, word, lane - own + w);
    }
  }
  SINTER_DEVICE unsigned read_chunk(int half, int key) const {
    if (key >= keys_) return 0xffffu;
    return truth_bits(*reinterpret_cast<const uint4*>(rows_[half].from + key));
  }

  typename Mask::Row rows_[2];
  int keys_;
};

}  // namespace sinter
