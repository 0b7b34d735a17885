// Attention of many tokens of float32: the order of operations of float_attention, the same text on
// host and device.
//
// The rows of the caches are cut into tiles of kFloatTileKeys rows, at multiples of that number. A
// token's head walks the tiles in which it sees keys, upwards: first the sink's tiles, then its
// range's tiles; a tile in both counts once (the online softmax of Milakov and Gimelshein 2018). It
// sees the keys of its range but those whose mask is false. It keeps the largest score m, eight
// sums of weights l and per element the weighted sum of values. For each tile:
//
//   1. The dot product q·k of each key: a chain of fused multiply-adds from 0 on, elements
//      ascending. attention_score of it, to which a mask of numbers is added.
//   2. m grows to the tile's largest score. What was summed is multiplied by
//      attention_growth(old m, new m).
//   3. A key's weight is attention_weight(score, m). Weights are added to the sums l, key j of the
//      tile to sum j mod 8, upwards.
//   4. The values are multiplied by their weights and added to the weighted sums, each by one fused
//      multiply-add, keys ascending.
//
// At the end l = ((l0 + l1) + (l2 + l3)) + ((l4 + l5) + (l6 + l7)), and an element is
// attention_result of its weighted sum and l.
//
// A tile in which a token sees no key changes nothing, and a key that it does not see takes no
// part. So a token's bits depend on the keys that it sees and on their rows modulo the tile, not on
// the tokens that share a block with it.
#pragma once

#include "kernels/common/attention_scores.cuh"
#include "kernels/common/visible_keys.cuh"

namespace sinter {

constexpr int kFloatTileKeys = 64;

/// The factor of sums taken under the maximum `before` where it becomes `largest`.
SINTER_DEVICE float attention_growth(float before, float largest) {
  return before == largest ? 1.0f : attention_weight(before, largest);
}

/// A token sees a key with that in its mask: a truth value, or a number, which hides no key.
SINTER_DEVICE bool attention_sees(bool seen) { return seen; }
SINTER_DEVICE bool attention_sees(float) { return true; }

}  // namespace sinter
