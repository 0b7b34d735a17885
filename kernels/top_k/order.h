// The order of elements by which `top_k` chooses, and its bounds; for host and device.
//
// x comes before y if it is larger, or if neither is larger and x has the lesser position. NaN is
// larger than every number and no NaN is larger than another; -0 and +0 are equal.
#pragma once

namespace sinter {

constexpr int kMaxTopKColumns = 1024;  // 32 keys in registers of each lane
constexpr int kMaxTopK = 64;
constexpr int kTopKThreads = 128;  // of a block, whose warps have a row each

}  // namespace sinter
