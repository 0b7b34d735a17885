// setmaxnreg: the warpgroups of a block hand registers to one another.
#pragma once

#include "ir/scalar_math.h"

#if SINTER_HAS_WGMMA
namespace sinter {

/// From here on each thread of this warpgroup has `registers` registers, fewer than before.
template <int registers>
SINTER_DEVICE void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
/// More than before; waits until they are free.
template <int registers>
SINTER_DEVICE void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}

}  // namespace sinter
#endif
