// Attention of few tokens over a long cache, cut into splits and streams: the order of operations
// of decode_attention, the same text on host and device.
//
// A token sees the keys low .. low + count - 1, of a checked op those that are rows of the cache.
// Split s takes ceil(count / splits) of them from low + s * ceil(count / splits) on, as far as
// there are. With a sink of S keys before low the S keys count as low - S .. low - 1: the splits
// cut one row of keys, the sink's first. A split's keys are cut into blocks of kAttentionBlock;
// block b belongs to stream b mod `streams`, by default attention_most_streams. A stream keeps the
// largest score m, the sum l of exp(score - m) and per element the sum of the values weighted so;
// it takes its blocks in order: first m grows, what was summed is scaled by exp(old m - new m),
// then the block's keys are added in order, each by one fused multiply-add. (The online softmax of
// Milakov and Gimelshein 2018, split over keys as in Flash-Decoding.)
//
// The streams of a split are joined: m becomes the largest m of the streams, and a stream's sums
// are multiplied by exp(its m - m). Then attention_neighbours streams are added at a time, by a
// butterfly with strides 1, 2, 4 ..., and those totals in order, from +0 on. The splits are joined
// in order: m becomes the largest m of the splits, and every sum is added by one fused multiply-add
// with exp(its m - m). An element of the result is its sum divided by l (attention_result).
//
// A score is the dot product q·k times `scale`: chunks of 8 elements, each a chain of fused
// multiply-adds, joined by a butterfly over attention_lanes lanes with strides 1, 2, 4 ... A mask
// of numbers is added to it; where one of truth values is false, it is -inf.
#pragma once

#include "kernels/common/attention_scores.cuh"
#include "kernels/common/visible_keys.cuh"

namespace sinter {

constexpr int kAttentionBlock = 4;      // keys
constexpr int kMaxAttentionSplits = 8;  // blocks of threads that every device can let share memory

/// Lanes of 8 elements for heads of these widths: a power of two.
SINTER_DEVICE constexpr int attention_lanes(int width, int value_width) {
  const int chunks = ((width > value_width ? width : value_width) + 7) / 8;
  int lanes = 1;
  while (lanes < chunks) lanes *= 2;
  return lanes;
}
/// The most streams of a split: with their lanes 64 .. 512 threads.
SINTER_DEVICE constexpr int attention_most_streams(int lanes) {
  return lanes <= 8 ? 64 : 512 / lanes;
}
/// Streams per warp, the minimum of a split; a split has a power of two.
SINTER_DEVICE constexpr int attention_neighbours(int lanes) { return 32 / lanes; }

/// Query heads of a key head, of `group`, that one block of threads takes: more keep more sums in
/// registers, fewer read the keys more often. No order of operations depends on it. (One H200, a
/// token of Llama-3.2-1B after 8,192: 970 us with 4 heads a block, 912 with 2, in as many more
/// blocks: what a multiprocessor computes takes longer than reading the keys twice. In as many
/// blocks, 12 splits, 995 and 885: so large clusters do not all run at a time, see
/// choose.cpp.)
SINTER_DEVICE constexpr long long attention_tile(long long group) { return group % 2 == 0 ? 2 : 1; }

/// The same where tokens alone fill the device several times.
SINTER_DEVICE constexpr long long attention_wide_tile(long long group, long long splits) {
  return splits == 1 && group % 4 == 0 ? 4 : attention_tile(group);
}

/// The keys of split `s`.
SINTER_DEVICE AttentionRange attention_split(AttentionRange all, int splits, int s) {
  const long long length = (all.count + splits - 1) / splits;
  const long long begin = s * length < all.count ? s * length : all.count;
  const long long left = all.count - begin;
  return {all.low + begin, left < length ? left : length};
}

}  // namespace sinter
