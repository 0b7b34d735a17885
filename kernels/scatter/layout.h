// The sizes that the kernel of `scatter_add` and its emitter share.
#pragma once

namespace sinter {

constexpr int kScatterThreads = 256;
constexpr int kScatterWarps = kScatterThreads / 32;
constexpr int kScatterColumns = 8 * 32;  // of a warp: a chunk of 8 for each lane
/// Updates of a block's rows that each warp can note, of those in its part of the index.
constexpr int kScatterListed = 512;

}  // namespace sinter
