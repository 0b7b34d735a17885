// Arithmetic of integers that several rooms need.
#pragma once

#include <cstdint>

namespace sinter {

/// a / b, rounded up; neither is negative.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

}  // namespace sinter
