// cp.async.bulk: one instruction copies a run of bytes from global into shared memory, and an
// mbarrier counts its bytes; cp.async.bulk.prefetch brings a run into the L2 cache. Addresses and
// sizes are multiples of 16 bytes.
#pragma once

#include "kernels/isa/mbarrier.cuh"

#if SINTER_HAS_BULK_COPY
namespace sinter {

/// With the cache hint evict_first: for data that is read once.
SINTER_DEVICE void cp_async_bulk_evict_first(SharedAddress to, const void* from, int bytes,
                                             SharedAddress barrier) {
  asm volatile(
      "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], policy;\n}" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

/// Nothing waits for the bytes.
SINTER_DEVICE void cp_async_bulk_prefetch_L2(const void* from, int bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(from)),
               "r"(bytes));
}

}  // namespace sinter
#endif
