// Prefetching into the second-level cache what other blocks of the launch read later.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// Prefetches `bytes` from `begin` on, both multiples of 16. Nothing waits for them.
SINTER_DEVICE void prefetch(const void* begin, int bytes) {
#if SINTER_SHIM
  // Touches both ends, so that a sanitizer reports a prefetch outside of a tensor.
  const auto* memory = static_cast<const volatile unsigned char*>(begin);
  if (bytes > 0) static_cast<void>(memory[0] + memory[bytes - 1]);
#elif SINTER_HAS_BULK_COPY
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(begin)),
               "r"(bytes));
#endif
}

// Prefetches one part of an input, which has a part of `count` elements for each block of the
// launch. Behind the last part there is nothing to prefetch.
template <int count, typename T>
SINTER_DEVICE void prefetch_part(const T* input, long long part) {
  if (threadIdx.x == 0 && part < gridDim.x)
    prefetch(input + part * count, count * static_cast<int>(sizeof(T)));
}

}  // namespace sinter
