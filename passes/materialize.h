// Copies where a value must stand in memory in another form than it has.
//
//   return %input                        =>   %input.out = copy %input; return %input.out
//   einsum %a, %b, no unit stride in a   =>   einsum of transpose (copy (transpose %a)), %b
//
// Afterwards every output is the result of a computing op, and every linear and einsum has a
// ContractionForm.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool materialize(Module& module);

}  // namespace sinter
