// What a kernel moves through memory.
#pragma once

#include "kernels/fusion_problem.h"

namespace sinter {

/// Bytes that a kernel of these ops reads and writes, symbols at their upper bound.
double traffic(const FusionProblem& problem, Members members);

/// Pointers that a kernel of these ops holds, and how many it can.
size_t pointers(const FusionProblem& problem, Members members);
constexpr size_t kMaxPointers = 64;  // parameters are 4 KiB, and registers hold addresses

}  // namespace sinter
