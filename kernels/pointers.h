// How large a kernel may be.
#pragma once

#include "kernels/fusion_problem.h"

namespace sinter {

/// Pointers that a kernel of these ops has: to values that it reads and to those that it writes.
size_t pointers(const FusionProblem& problem, Members members);
/// The most of a kernel whose threads hold all of them: registers hold addresses.
constexpr size_t kMaxPointers = 64;
/// The most of a kernel of several parts, whose threads hold the pointers of one part: 8 bytes
/// each, of the 32,764 bytes of parameters.
constexpr size_t kMaxParameters = 4000;
constexpr size_t kMaxOps = 64;  // of a kernel of one part, whose text is compiled

}  // namespace sinter
