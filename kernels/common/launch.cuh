// Programmatic dependent launch (PDL): a small kernel, whose time is mostly latency, begins while
// the kernel before it ends. Most such kernels begin with a trigger and a wait:
//
//   griddepcontrol_launch_dependents();
//   griddepcontrol_wait();
//
//   kernel A  |T|------ work ------|
//   kernel B    |launch|T|wait ....|------ work ------|
//   kernel C             |launch|T|wait ..............|------ work ------|
//
// T is the trigger; A's wait returns at once, since nothing runs before it. The next kernel may
// begin when every block of this one has triggered or ended. All blocks of this kernel then have
// their place on the device, so that waiting blocks of the next one cannot keep them out. The wait
// returns when all earlier kernels are complete, and their writes are visible.
//
// Nothing else orders such kernels in a stream. Before the wait a kernel may touch only memory that
// no kernel of the plan writes, such as weights, or what was complete when it began (see below).
// The compiler must not move a load ahead of the wait either. NVRTC 13.0 moves loads of memory that
// it takes for constant (ld.global.nc): it generates them for __ldg, and for reads through
// __restrict__ parameters. So these kernels have no __restrict__ parameters, and call no __ldg.
//
// After the wait ALL earlier kernels are complete, not only the one directly before. C's wait
// returns when B is complete. B ends only after its own wait has returned, which is when A is
// complete; and so on back to the first kernel. Hence after its wait a kernel may also overwrite
// memory that an earlier kernel reads. Steps without a wait (other kernels, products of cuBLASLt,
// copies) are launched without overlap: each begins when all steps before it are complete, and the
// steps after it begin when it is complete.
//
// Trigger after wait (Overlap::triggers_after_wait): kernel B may trigger when its own wait has
// returned. All kernels before B are then complete when C begins. So C may read what A wrote ahead
// of C's own wait, after an acquire fence; what B writes it may not:
//
//   kernel A  |T|-- writes x --|
//   kernel B    |launch|wait ..|T|--------------- work ---------------|
//   kernel C                     |launch|T|fence|-- reads x --|wait ..|-- work --|
//
// Kernel C still waits, in all its threads, before it writes and before it ends: what follows
// relies on that, as above.
#pragma once

#include "kernels/isa/griddepcontrol.cuh"
