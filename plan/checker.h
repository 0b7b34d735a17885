// Proves a Program's memory safe, independently of the planner that made it.
#pragma once

#include "plan/program.h"

namespace sinter {

/// Checks, for all values of the symbols: every buffer lies in its arena; no two arena buffers that
/// are live at the same step overlap, unless a kernel reads each element of one before it writes
/// the other's element in its place; every read comes after the step that writes the value and
/// before its space is given to another; a value made of parts is read when all parts are there; a
/// state is read in the version the IR says; what a kernel reads before it waits for the kernels
/// ahead is complete when it begins; row numbers are checked before a kernel addresses memory by
/// them, or by the kernel itself; a buffer has the type and the size of the input, weight or state
/// that it stands for; kernel arguments have the types of the group's inputs and outputs; GEMM
/// operands stay inside their values, and every element of a GEMM's result is written; a kernel
/// whose result has elements is launched. Reports the first violation with the names of the values.
Status check(const Program& program);

}  // namespace sinter
