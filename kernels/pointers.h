// How many pointers a kernel holds.
#pragma once

#include "kernels/fusion_problem.h"

namespace sinter {

/// Pointers that the threads of a kernel of these ops hold, and how many they can.
size_t pointers(const FusionProblem& problem, Members members);
constexpr size_t kMaxPointers = 64;  // registers hold addresses

/// Tensors in memory that a kernel of these ops reads or writes. A kernel of several parts has the
/// parameters of all of them, and each thread holds those of one.
size_t parameters(const FusionProblem& problem, Members members);
constexpr size_t kMaxParameters = 4000;  // of 8 bytes, in the 32,764 that kernels have

}  // namespace sinter
