// st.global.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE void st_global_v4(void* p, uint4 words) { *static_cast<uint4*>(p) = words; }
SINTER_DEVICE void st_global_v2(void* p, uint2 words) { *static_cast<uint2*>(p) = words; }

}  // namespace sinter
