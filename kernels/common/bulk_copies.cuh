// Bulk copies into shared memory, and the barriers that count their bytes: an instruction copies a
// run of bytes, and nothing waits before the data is wanted.
//
// The CPU of the tests may play a device that has them: a copy is there at once, so that what
// overwrites a place too early, or takes another stage than was filled, is seen.
#pragma once

#include "kernels/common/shared_address.cuh"

#if SINTER_HAS_BULK_COPY
namespace sinter {

#ifdef __CUDACC_RTC__
SINTER_DEVICE int dynamic_shared_bytes() {
  int bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  return bytes;
}

// A barrier of 8 bytes, for one arrival at a time.
SINTER_DEVICE void init_barrier(SharedAddress barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
}
SINTER_DEVICE void show_barriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// Arrives; the barrier's phase ends when so many bytes have come.
SINTER_DEVICE void expect_bytes(SharedAddress barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
// Returns when the phase of that parity has ended. All lanes of a warp call it.
SINTER_DEVICE void wait_for_bytes(SharedAddress barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, "
        "1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}
// Copies a multiple of 16 bytes. What is read once should leave the cache before all else.
SINTER_DEVICE void copy_once(SharedAddress to, const void* from, int bytes, SharedAddress barrier) {
  asm volatile(
      "{\n.reg .b64 policy;\ncreatepolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
      "[%0], [%1], %2, [%3], policy;\n}" ::"r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}

#else
SINTER_DEVICE int dynamic_shared_bytes() {
  return static_cast<int>(sinter_shim_calls->context->shared_bytes);
}
SINTER_DEVICE void init_barrier(SharedAddress) {}
SINTER_DEVICE void show_barriers() {}
SINTER_DEVICE void expect_bytes(SharedAddress, int) {}
SINTER_DEVICE void wait_for_bytes(SharedAddress, unsigned) { __syncwarp(); }
SINTER_DEVICE void copy_once(SharedAddress to, const void* from, int bytes, SharedAddress) {
  memcpy(reinterpret_cast<void*>(to), from, static_cast<size_t>(bytes));
}
#endif

}  // namespace sinter
#endif
