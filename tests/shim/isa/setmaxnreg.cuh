// setmaxnreg: registers are not counted.
#pragma once

#include "ir/scalar_math.h"

#if SINTER_HAS_WGMMA
namespace sinter {

template <int registers>
SINTER_DEVICE void setmaxnreg_dec() {}
template <int registers>
SINTER_DEVICE void setmaxnreg_inc() {}

}  // namespace sinter
#endif
