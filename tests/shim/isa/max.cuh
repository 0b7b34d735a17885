// max.NaN.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE float max_nan(float a, float b) { return a != a || b != b ? a + b : a < b ? b : a; }

}  // namespace sinter
