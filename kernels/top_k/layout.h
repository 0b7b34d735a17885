// The sizes of `top_k` that the op, its kernel and its emitter share.
#pragma once

namespace sinter {

constexpr int kMostTopKColumns = 1024;  // 32 keys in registers of each lane
constexpr int kMostTopK = 64;
constexpr int kTopKThreads = 128;  // a warp has a row

}  // namespace sinter
