// ld.global.cg and prefetch.global.L2.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE uint4 ld_global_cg_v4(const void* p) { return *static_cast<const uint4*>(p); }
SINTER_DEVICE unsigned ld_global_cg_b32(const void* p) { return *static_cast<const unsigned*>(p); }
SINTER_DEVICE unsigned short ld_global_cg_b16(const void* p) {
  return *static_cast<const unsigned short*>(p);
}
// Touches the byte, so that a sanitizer reports a prefetch outside of a tensor.
SINTER_DEVICE void prefetch_global_L2(const void* p) {
  static_cast<void>(*static_cast<const volatile unsigned char*>(p));
}

}  // namespace sinter
