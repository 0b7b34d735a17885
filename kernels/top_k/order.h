// The order of elements by which `top_k` chooses, and its bounds; for host and device.
//
// x comes before y if it is larger, or if neither is larger and x has the lesser position. NaN is
// larger than every number and no NaN is larger than another; -0 and +0 are equal.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kMaxTopKColumns = 1024;  // 32 keys in registers of each lane
constexpr int kMaxTopK = 64;
constexpr int kTopKThreads = 128;  // of a block, whose warps have a row each

/// Orders the elements of a row as above: a larger key comes before. 0 is the key of no element.
SINTER_DEVICE math::u64 top_k_key(float x, int position) {
  return static_cast<math::u64>(math::order_key(x)) << 32 | ~static_cast<math::u32>(position);
}
SINTER_DEVICE int top_k_position(math::u64 key) {
  return static_cast<int>(~static_cast<math::u32>(key));
}

}  // namespace sinter
