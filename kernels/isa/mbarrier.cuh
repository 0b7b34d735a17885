// mbarrier: barriers in shared memory, by which warps of different roles hand buffers to one
// another.
//
// A barrier counts arrivals, and bytes that copies are to bring. Its phase ends when the expected
// number of threads have arrived and all announced bytes have come; the next phase begins with the
// same number of arrivals. Phases have the parities 0, 1, 0, 1, ... A wait for a parity returns
// when the last phase of that parity has ended: on a new barrier a wait for parity 1 returns at
// once, a wait for parity 0 after the first phase.
#pragma once

#include "kernels/isa/address.cuh"

#if SINTER_HAS_WGMMA || SINTER_HAS_BULK_COPY
namespace sinter {

/// 8 bytes of shared memory.
using Barrier = math::u64;

/// Sets the number of arrivals of a phase. fence_mbarrier_init() and __syncthreads() follow.
SINTER_DEVICE void mbarrier_init(SharedAddress barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
SINTER_DEVICE void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
/// A wait that returns because of this arrival sees everything that the thread has written.
SINTER_DEVICE void mbarrier_arrive(SharedAddress barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
/// Arrives at the barrier that has this address in the block of that rank of the cluster: mapa and
/// mbarrier.arrive. What the thread has written is not visible there: the arrival only says that it
/// has read.
SINTER_DEVICE void mbarrier_arrive_cluster(SharedAddress barrier, int rank) {
  asm volatile(
      "{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(barrier),
      "r"(rank)
      : "memory");
}
/// Arrives, and announces bytes that copies bring before the phase ends.
SINTER_DEVICE void mbarrier_arrive_expect_tx(SharedAddress barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
/// Arrives when all copies of the thread that it has begun (cp_async) are complete.
SINTER_DEVICE void cp_async_mbarrier_arrive_noinc(SharedAddress barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}
/// Repeats mbarrier.try_wait.parity until the phase has ended.
SINTER_DEVICE void mbarrier_try_wait_parity(SharedAddress barrier, unsigned parity) {
  unsigned done = 0;
  while (done == 0)
    asm volatile(
        "{\n.reg .pred p;\nmbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, "
        "1, 0, p;\n}"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
}

}  // namespace sinter
#endif
