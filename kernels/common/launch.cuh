// Programmatic dependent launch (PDL): a small kernel, whose time is mostly latency, begins while
// the kernel before it ends. Most such kernels begin with a trigger and a wait:
//
//   pdl_trigger();
//   pdl_wait();
//
//   kernel A  |trigger|wait|-- work --|
//   kernel B        |launch |trigger|wait .....|-- work --|
//   kernel C                      |launch |wait .............|-- work --|
//
// The trigger lets the next kernel launch as soon as every block of this one runs or has ended, so
// that blocks which wait never take the place of blocks that they wait for. The wait returns when
// all earlier kernels are complete, and their writes are visible.
//
// Nothing else orders such kernels in a stream. Before the wait a kernel may touch only memory that
// no kernel of the plan writes, such as weights, or what was complete when it began (see below).
// The compiler must not move a load ahead of the wait either. NVRTC 13.0 does so with loads of
// memory that it takes for constant (ld.global.nc, which it makes of __ldg and of reads through
// __restrict__ parameters). So these kernels have no __restrict__ parameters, and the library has
// no such loads.
//
// After the wait ALL earlier kernels are complete, not only the one directly before: that one is
// complete only if its own wait has returned, so the kernel before it was complete, and so on to
// the first. Hence a kernel may also overwrite memory that any earlier kernel reads. What has no
// wait (other kernels, the library's products, copies) is launched without overlap: it begins when
// all before it is complete, and what follows waits for its end.
//
// Trigger after wait (Overlap::triggers_after_wait): a kernel may trigger when its own wait has
// returned. All kernels before it are then complete when the next one begins, so the next one may
// read what they wrote before its own wait, after an acquire fence:
//
//   kernel A  |-- writes x --|
//   kernel B     |wait .......|trigger|-- work --|
//   kernel C                        |launch |fence|-- reads x --|wait .|-- work --|
//
// Kernel C still waits, in all its threads, before it writes and before it ends: what follows
// relies on that, as above.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// Lets the next kernel launch; it has a wait of its own.
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

// What was complete when the kernel began is visible after it: no first-level cache has older
// copies.
SINTER_DEVICE void acquire_fence() {
#if SINTER_HAS_PDL
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

}  // namespace sinter
