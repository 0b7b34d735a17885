// Prefetching into the L2 cache what other blocks of the launch read later.
#pragma once

#include "kernels/isa/bulk_copy.cuh"

namespace sinter {

// Prefetches one part of an input, which has a part of `count` elements for each block of the
// launch. Behind the last part, and on a device without bulk copies, there is nothing to prefetch.
template <int count, typename T>
SINTER_DEVICE void prefetch_part(const T* input, long long part) {
#if SINTER_HAS_BULK_COPY
  if (threadIdx.x == 0 && part < gridDim.x)
    cp_async_bulk_prefetch_L2(input + part * count, count * static_cast<int>(sizeof(T)));
#endif
}

}  // namespace sinter
