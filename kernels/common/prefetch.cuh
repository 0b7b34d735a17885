// Requests for memory that a block reads later in the same launch.
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

// Asks for what the block of that number reads, if there is one: each block reads the `count`
// elements behind those of the block before it.
template <int count, typename T>
SINTER_DEVICE void prefetch_block(const T* elements, long long block) {
  if (threadIdx.x == 0 && block < gridDim.x)
    prefetch(elements + block * count, count * static_cast<int>(sizeof(T)));
}

}  // namespace sinter
