// How many pointers a kernel holds.
#pragma once

#include "kernels/fusion_problem.h"

namespace sinter {

/// Pointers that a kernel of these ops holds, and how many it can.
size_t pointers(const FusionProblem& problem, Members members);
constexpr size_t kMaxPointers = 64;  // parameters are 4 KiB, and registers hold addresses

}  // namespace sinter
