// Kernels that begin while the one before them ends (programmatic dependent launch): small ones,
// whose time is mostly latency. Most begin with
//
//   pdl_trigger();
//   pdl_wait();
//
// Nothing else orders such kernels in a stream: until the wait returns a kernel may touch only
// memory that no kernel of the plan writes, such as weights, or what was complete when it began
// (see below). The compiler must not do so either: a load that it takes for one of memory that
// stays as it is while the kernel runs (ld.global.nc, which it makes of what __ldg or a
// __restrict__ parameter reads) is moved ahead of the wait by NVRTC 13.0. So these kernels have no
// __restrict__ parameters, and the library no such loads.
//
// After the wait all earlier kernels are complete and what they wrote is visible, not only those of
// the kernel directly before. That one is complete only if its own wait has returned, so that the
// kernel before it was complete, and so on to the first. Hence a kernel may also write memory that
// any earlier one reads. What has no wait (other kernels, the library's products, copies) is
// launched without leave to overlap: it begins when all before it is complete, and what follows
// waits for its end.
//
// The next kernel's blocks are launched when every block of this one is running or has ended, so
// that blocks which wait never take the place of blocks that they wait for.
//
// A kernel may also hold the next one until its own wait has returned (Overlap::triggers_after_wait):
//
//   pdl_wait();
//   pdl_trigger();
//
// All kernels before it are then complete when the next begins, which so may read what they wrote
// before it waits in its turn:
//
//   acquire_fence();
//   ... reads of what kernels before the one directly before wrote; nothing is written
//   pdl_wait();
//
// It still waits, in all its threads, before it writes and before it ends: what follows relies on
// that, as above.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// From here on the next kernel may be launched, to wait in its turn.
SINTER_DEVICE void pdl_trigger() {
#if SINTER_HAS_PDL
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Returns when all earlier kernels are complete and their writes are visible. Every thread calls
// it, before it reads or writes what another kernel of the plan touches.
SINTER_DEVICE void pdl_wait() {
#if SINTER_HAS_PDL
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// What was complete when the kernel began is visible from here on: no first-level cache holds older
// copies of it.
SINTER_DEVICE void acquire_fence() {
#if SINTER_HAS_PDL
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

}  // namespace sinter
