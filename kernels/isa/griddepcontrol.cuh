// griddepcontrol: programmatic dependent launch (kernels/common/launch.cuh), and the fence of reads
// ahead of its wait. Without it a kernel begins when all earlier ones are complete, and the
// functions do nothing.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// Allows the next kernel to begin, which must have a wait of its own.
SINTER_DEVICE void griddepcontrol_launch_dependents() {
#if SINTER_HAS_PDL
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/// Returns when all earlier kernels are complete and their writes are visible. Every thread calls
/// it, before it reads or writes what another kernel of the plan touches.
SINTER_DEVICE void griddepcontrol_wait() {
#if SINTER_HAS_PDL
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Before reads ahead of the wait: after this fence the kernel sees all writes that were complete
/// when it began, and no older copies in a first-level cache.
SINTER_DEVICE void fence_acq_rel_gpu() {
#if SINTER_HAS_PDL
  asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

}  // namespace sinter
