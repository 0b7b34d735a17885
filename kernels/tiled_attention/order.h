// Attention of many tokens on tensor cores: the order of operations of tiled_attention, the same
// text on host and device.
//
// The rows of the caches are cut into tiles of attention_key_tile rows, at multiples of that
// number. A token's head walks the tiles in which it sees keys, upwards: first the sink's tiles,
// then its range's tiles; a tile in both counts once (the online softmax of Milakov and Gimelshein
// 2018, in the form of FlashAttention 2). It keeps the largest logit m, the sums of weights l and
// per element the weighted sum of values. For each tile:
//
//   1. The dot product q·k of each key in float32, a step of 16 elements after the other. Tensor
//      cores add the products of a step to the sum in an order of their own; the host, and the CPU
//      of the tests, add them in float64, elements ascending, and round once a step.
//   2. attention_logit of each dot product and what the mask has for the key; -inf for keys of the
//      tile that the token does not see.
//   3. m grows to the tile's largest logit. What was summed is multiplied by
//      attention_exp2((old m - new m) * factor).
//   4. A key's weight is attention_weight: 2^(logit * factor - m * factor), a fused multiply-add;
//      with a mask of numbers 2^((logit - m) * factor), as the product with the factor may be
//      infinite where the mask has the lowest number of its type. Weights
//      are added to eight sums l, key j of the tile to sum j mod 8, upwards.
//   5. A dropout makes 0 of the weights that it leaves out (dropout_keeps).
//   6. The weights, rounded to the type of the values, are multiplied with the values as in 1, a
//      step of 16 keys after the other, and added to the weighted sums.
//
// At the end l = ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)), an element is its weighted sum
// times attention_inverse(l), which a dropout multiplies by dropout_scale, and the log-sum is
// attention_log_sum of l and m. Until a token sees a key, 0 stands for m in 3 and 4, where m is
// -inf.
//
// A tile in which m does not grow multiplies nothing in 3. One in which a token sees no key changes
// nothing: m stays, weights are 0. So a token's bits depend on its own keys and on
// their rows modulo the tile, not on the tokens that share a block with it: sequences that begin at
// multiples of 128 rows are alike. (A value that is infinite or NaN, in a tile with a key that
// the token sees, may make NaN of its element: its weight 0 is multiplied with it.)
//
// With segments of S keys, the tiles of a token are cut into runs of S keys from the tile of its
// sequence's first row (`first`) on; tiles before that are one more run. A segment is walked as
// above from the beginning, and has a state at its end: m, l as one number, and the weighted sums.
// States are joined one by one, upwards (joining is not associative): attention_joined(). So any
// number of segments may be walked at a time, by a prefill one after the other, and each token has
// the same bits.
//
// With a summary of the mask (mask_tiles) a token leaves out the tiles of keys that it says are
// hidden from all tokens of a tile of kAttentionTokenTile tokens.
#pragma once

#include "ir/attention_dropout.h"
#include "kernels/common/attention_score.cuh"
#include "kernels/common/visible_keys.cuh"

namespace sinter {

/// Tokens of a mask tile that is skipped as a whole: a multiple of a block's tokens.
constexpr int kAttentionTokenTile = 128;
/// Keys of a tile, for heads of these widths: as many as leave registers for the sums of a row.
SINTER_DEVICE constexpr int attention_key_tile(int width, int value_width) {
  return width <= 128 && value_width <= 128 ? 128 : 64;
}

constexpr int kMaxAttentionSegment = 1 << 20;  // keys
/// Blocks that share a token's segments: a cluster that every device can hold that has clusters.
constexpr int kMaxFewSplits = 8;

/// The segment of a tile, of `tiles` tiles each, where the row `first` is the sequence's first one.
SINTER_DEVICE int attention_segment(int tile, int first, int keys, int tiles) {
  const int begin = (first > 0 ? first : 0) / keys;
  return tile < begin ? -1 : (tile - begin) / tiles;
}

/// The number that stands for m where weights are computed.
SINTER_DEVICE float attention_base(float largest) {
  return largest == -math::infinity() ? 0.0f : largest;
}
/// The number that stands for m in the exponent of a weight.
SINTER_DEVICE float attention_shift(float largest, float factor, bool adds_mask) {
  const float base = attention_base(largest);
  return adds_mask ? -base : -math::mul(base, factor);
}
SINTER_DEVICE float attention_weight(float logit, float shift, float factor, bool adds_mask) {
  return attention_exp2(adds_mask ? math::mul(math::add(logit, shift), factor)
                                  : math::fma(logit, factor, shift));
}
/// The factor by which sums are multiplied where m grows; 1 where it does not.
SINTER_DEVICE float attention_scale(float before, float largest, float factor) {
  if (before == largest) return 1.0f;
  return attention_exp2(math::mul(math::sub(before, attention_base(largest)), factor));
}

/// How the state of a segment is joined to the state of all segments before the segment.
struct AttentionJoin {
  float before, own;  // factors of both sums
  bool replaces;      // no key of the state before was seen
  bool keeps;         // no key of the segment was seen
};
/// `before`, `own`: the largest logits m of both; the joined state has the larger one.
SINTER_DEVICE AttentionJoin attention_join(float before, float own, float factor) {
  const float largest = math::maximum(before, own);
  return {attention_scale(before, largest, factor), attention_scale(own, largest, factor),
          before == -math::infinity(), own == -math::infinity()};
}
/// The joined sum, of l or of an element.
SINTER_DEVICE float attention_joined(const AttentionJoin& join, float before, float own) {
  const float sum = math::fma(own, join.own, math::mul(before, join.before));
  return join.replaces ? own : join.keeps ? before : sum;
}

/// The factor of a weighted sum at the end. No key was seen where l is 0: NaN or, with
/// `empty_zero`, zeros.
SINTER_DEVICE float attention_inverse(float weights, bool empty_zero) {
  return empty_zero && weights == 0.0f ? 0.0f : math::div(1.0f, weights);
}

/// log2 of the sum of 2^(logit * factor) over a token's keys, of whose weights `weights` is the sum
/// at the end; -inf where no key was seen.
SINTER_DEVICE float attention_log_sum(float weights, float shift, float factor, bool adds_mask) {
  return math::sub(attention_log2(weights), adds_mask ? math::mul(shift, factor) : shift);
}

}  // namespace sinter
