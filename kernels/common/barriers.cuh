// Barriers of shared memory (mbarrier), by which warps of different roles hand buffers to one
// another, and barriers of some of a block's warps.
//
// A barrier counts arrivals. When as many threads have arrived as it was set up for, its phase ends
// and the next one begins, with the same count. Phases have the parities 0, 1, 0, 1, ...; a wait
// for a parity returns when the last phase of that parity has ended. So on a new barrier a wait for
// parity 1 returns at once, and a wait for parity 0 returns after the first phase.
//
// The CPU of the tests plays barriers in full: a thread that waits gives way to the others.
#pragma once

#include "kernels/common/async_copies.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

using Barrier = math::u64;

#ifdef __CUDACC_RTC__
// One thread sets barriers up and then shows them; __syncthreads() follows.
SINTER_DEVICE void set_up_barrier(Barrier* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)),
               "r"(arrivals)
               : "memory");
}
SINTER_DEVICE void show_barriers_to_block() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
// A wait that returns because of this arrival sees everything that the thread has written.
SINTER_DEVICE void arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
// Arrives when all copies are there that the thread has begun (copy_async).
SINTER_DEVICE void arrive_when_copied(Barrier* barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(barrier))
               : "memory");
}
SINTER_DEVICE void wait_for_phase(Barrier* barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, "
        "1, 0, p;\n}"
        : "=r"(done)
        : "r"(shared_address(barrier)), "r"(parity)
        : "memory");
}
// A barrier of `threads` threads, whole warps; `number`, 1 .. 15, tells such barriers apart.
SINTER_DEVICE void sync_warps(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
#else
// Bits 0 .. 30: arrivals that the phase lacks; 32 .. 62: arrivals of a phase; 63: its parity.
SINTER_DEVICE void set_up_barrier(Barrier* barrier, unsigned arrivals) {
  *barrier = static_cast<Barrier>(arrivals) << 32 | arrivals;
}
SINTER_DEVICE void show_barriers_to_block() {}
SINTER_DEVICE void arrive(Barrier* barrier) {
  *barrier -= 1;
  if ((*barrier & 0x7fffffff) == 0)
    *barrier = (*barrier ^ 1ull << 63) | (*barrier >> 32 & 0x7fffffff);
}
SINTER_DEVICE void arrive_when_copied(Barrier* barrier) {
  commit_copies();
  wait_for_copies<0>();
  arrive(barrier);
}
SINTER_DEVICE void wait_for_phase(Barrier* barrier, unsigned parity) {
  sinter_shim_calls->wait_for_phase(barrier, parity, {__FILE__, __LINE__});
}
SINTER_DEVICE void sync_warps(int number, int threads) {
  sinter_shim_calls->named_barrier(number, threads, {__FILE__, __LINE__});
}
#endif

}  // namespace sinter
#endif
