// The order in which `gemv` sums a row of its matrix: the same text on host and device, whatever
// the number of threads and blocks.
//
// Split-K: the row's chunks of 8 elements are cut into `splits` runs of split_chunks(chunks,
// splits) chunks, the last ones shorter or empty. Chunk c of a split belongs to lane c mod 32. A
// lane starts at +0 and takes its chunks, and a chunk's elements, in ascending order, each by one
// fused multiply-add sum = fma(w, x, sum). Lanes combine by a butterfly with strides 1, 2, 4, 8,
// 16; splits are added in order, then the bias; the result is rounded once.
//
// In a packed matrix (ir/packed_codes.h) w is a code less its zero, exactly. A split is a multiple
// of a step. A lane adds the chunks that it has of one group by themselves, s1 from +0 as above,
// and with minima the elements of x, s2 from +0, each by one addition; then sum = fma(scale, s1,
// sum), and with minima sum = fma(-minimum, s2, sum): group by group in ascending order.
//
// Several tokens of a 16-bit type are multiplied by tensor cores, which add 16 products at once in
// an order of their own; the sums of kTileWarps parts of a row are then added in order. In a packed
// matrix s1 and s2 are sums of 32 neighbouring columns, 16 where that is the group. With zeros s1 =
// fma(b - zero, s2, the sum of x (code - b)), b the middle of the code's values if it has no sign.
// Then as above, without splits: columns c, c + 256, c + 512 .. of a step in turn, then c + 32.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kGemvLanes = 32;
/// One warp works on each split, so that a row has no more of them than a block has warps.
constexpr int kMaxGemvSplits = 16;
/// Tokens that one reading of the matrix serves.
constexpr int kMaxGemvTokens = 8;

/// Chunks of a split: a multiple of `unit`, which is the lanes, or the chunks of a packed step.
SINTER_DEVICE constexpr long long split_chunks(long long chunks, int splits,
                                               int unit = kGemvLanes) {
  return ((chunks + splits - 1) / splits + unit - 1) / unit * unit;
}

}  // namespace sinter
