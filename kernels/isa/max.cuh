// max.NaN: the larger one, NaN if either is.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE float max_nan(float a, float b) {
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
}

}  // namespace sinter
