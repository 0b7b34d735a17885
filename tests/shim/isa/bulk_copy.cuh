// cp.async.bulk.
#pragma once

#include "kernels/isa/mbarrier.cuh"

#if SINTER_HAS_BULK_COPY
namespace sinter {

SINTER_DEVICE void cp_async_bulk_evict_first(SharedAddress to, const void* from, int bytes,
                                             SharedAddress barrier) {
  CopyToBarrier copy = {};
  copy.barrier = barrier;
  copy.to = to;
  copy.from = from;
  copy.bytes = bytes;
  copy.run = [](const CopyToBarrier& c) {
    memcpy(reinterpret_cast<void*>(c.to), c.from, static_cast<size_t>(c.bytes));
  };
  begin_copy(copy);
}

// Touches both ends, so that a sanitizer reports a prefetch outside of a tensor.
SINTER_DEVICE void cp_async_bulk_prefetch_L2(const void* from, int bytes) {
  const auto* memory = static_cast<const volatile unsigned char*>(from);
  if (bytes > 0) static_cast<void>(memory[0] + memory[bytes - 1]);
}

}  // namespace sinter
#endif
