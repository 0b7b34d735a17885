// ld.global.cg: loads that pass by the first-level cache. prefetch.global.L2 brings a line into the
// L2 cache.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE uint4 ld_global_cg_v4(const void* p) {
  uint4 words;
  asm volatile("ld.global.cg.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(__cvta_generic_to_global(p)));
  return words;
}
SINTER_DEVICE unsigned ld_global_cg_b32(const void* p) {
  unsigned bits;
  asm volatile("ld.global.cg.b32 %0, [%1];" : "=r"(bits) : "l"(__cvta_generic_to_global(p)));
  return bits;
}
SINTER_DEVICE unsigned short ld_global_cg_b16(const void* p) {
  unsigned short bits;
  asm volatile("ld.global.cg.b16 %0, [%1];" : "=h"(bits) : "l"(__cvta_generic_to_global(p)));
  return bits;
}
SINTER_DEVICE void prefetch_global_L2(const void* p) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(__cvta_generic_to_global(p)));
}

}  // namespace sinter
