// st.global of 8 and 16 bytes. The stores name no memory that they change (they have no "memory"
// clobber): a kernel never reads what it stores, so that they need not hold back later loads.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE void st_global_v4(void* p, uint4 words) {
  asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p)),
               "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w));
}
SINTER_DEVICE void st_global_v2(void* p, uint2 words) {
  asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p)), "r"(words.x),
               "r"(words.y));
}

}  // namespace sinter
