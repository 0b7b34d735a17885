// The order in which `gemv` sums a row of its matrix: the same text on host and device, whatever
// the number of threads, blocks and tokens.
//
// Split-K: the row's chunks of 8 elements are cut into `splits` runs of split_chunks(chunks,
// splits) chunks, the last ones shorter or empty. Chunk c of a split belongs to lane c mod 32. A
// lane starts at +0 and takes its chunks, and a chunk's elements, in ascending order, each by one
// fused multiply-add sum = fma(w, x, sum). Lanes combine by a butterfly with strides 1, 2, 4, 8,
// 16; splits are added in order, then the bias; the result is rounded once.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kGemvLanes = 32;
/// One warp works on each split, so that a row has no more of them than a block has warps.
constexpr int kMaxGemvSplits = 16;
/// Tokens that one reading of the matrix serves.
constexpr int kMaxGemvTokens = 8;

/// Chunks of a split: a multiple of the lanes.
SINTER_DEVICE constexpr long long split_chunks(long long chunks, int splits) {
  return ((chunks + splits - 1) / splits + kGemvLanes - 1) / kGemvLanes * kGemvLanes;
}

}  // namespace sinter
