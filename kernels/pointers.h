// How large a kernel may be.
#pragma once

#include "kernels/fusion_problem.h"

namespace sinter {

/// Pointers that a kernel of these ops holds: to values that it reads and to those that it writes.
size_t pointers(const FusionProblem& problem, Members members);
constexpr size_t kMaxPointers = 64;  // parameters are 4 KiB, and registers hold addresses
constexpr size_t kMaxOps = 64;       // of a kernel, whose text is compiled

}  // namespace sinter
