// ld.global.cg.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE uint4 ld_global_cg_v4(const void* p) { return *static_cast<const uint4*>(p); }
SINTER_DEVICE unsigned ld_global_cg_b32(const void* p) { return *static_cast<const unsigned*>(p); }
SINTER_DEVICE unsigned short ld_global_cg_b16(const void* p) {
  return *static_cast<const unsigned short*>(p);
}

}  // namespace sinter
