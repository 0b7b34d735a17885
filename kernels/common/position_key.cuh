// Keys that order the elements of a row: the largest key belongs to the largest element, of equal
// ones to the one of the least position. 0 is the key of no element.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE math::u64 position_key(float x, int position) {
  return static_cast<math::u64>(math::order_key(x)) << 32 | ~static_cast<math::u32>(position);
}
SINTER_DEVICE int key_position(math::u64 key) {
  return static_cast<int>(~static_cast<math::u32>(key));
}

}  // namespace sinter
