// Requests for memory that other blocks read later in the same launch.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// Asks for a multiple of 16 bytes, aligned to 16, to be in the second-level cache soon. Nothing
// waits for them.
SINTER_DEVICE void prefetch(const void* begin, int bytes) {
#if SINTER_SHIM
  // Memory that is not there is seen.
  const auto* memory = static_cast<const volatile unsigned char*>(begin);
  if (bytes > 0) static_cast<void>(memory[0] + memory[bytes - 1]);
#elif SINTER_HAS_BULK_COPY
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(begin)),
               "r"(bytes));
#endif
}

// Asks for a part of an input that has one of `count` elements for each block of the launch; for
// none where `part` is beyond the last.
template <int count, typename T>
SINTER_DEVICE void prefetch_part(const T* input, long long part) {
  if (threadIdx.x == 0 && part < gridDim.x)
    prefetch(input + part * count, count * static_cast<int>(sizeof(T)));
}

}  // namespace sinter
