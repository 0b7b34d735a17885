// Shared memory of tiled_attention of few tokens (attention_few.cuh), for its schedule and kernel.
#pragma once

#include "kernels/tile/layout.h"

namespace sinter {

/// Rows of a product, which are query heads of one key head, and warps that load and multiply.
constexpr int kHeadRows = 16, kHeadWarps = 4, kHeadThreads = 32 * kHeadWarps;
/// Threads of a block: one more warp adds weights.
constexpr int kFewThreads = kHeadThreads + 32;

/// The query heads of a block, of `group` that a key head has.
SINTER_DEVICE constexpr long long few_heads(long long group) {
  long long heads = group < kHeadRows ? group : kHeadRows;
  while (group % heads != 0) --heads;
  return heads;
}

constexpr int kMinFewSlots = 2, kMaxFewSlots = 8;

/// Bytes of a slot, which holds a tile of keys or of values; widths are padded.
SINTER_DEVICE constexpr int few_slot_bytes(int keys, int width, int value_width) {
  return tile_bytes(keys, width > value_width ? width : value_width);
}
/// Bytes of the slots, the queries and the weights.
SINTER_DEVICE constexpr int few_tile_bytes(int keys, int width, int value_width, int slots) {
  return slots * few_slot_bytes(keys, width, value_width) + tile_bytes(kHeadRows, width) +
         tile_bytes(kHeadRows, keys);
}
/// Bytes behind them: what threads and blocks hand over (FewShared).
SINTER_DEVICE constexpr int few_handed_bytes(int keys, int heads, int value_width, int blocks) {
  const int owned = (heads * value_width + blocks - 1) / blocks;
  const int floats = kHeadWarps * kHeadRows + heads * (keys + 1) + 2 * kHeadRows +
                     2 * blocks * (owned + 2 * heads);
  return 4 * floats;
}

}  // namespace sinter
