// Copies where a value must stand in memory in another form than it has.
//
//   return %input                        =>   %input.out = copy %input; return %input.out
//   einsum %a, %b, no unit stride in a   =>   einsum of transpose (copy (transpose %a)), %b
//
// Requires that no op of constants is left to fold: a copy is made for a constant, not for an op.
// Afterwards every output is the result of a computing op, every linear and einsum has a
// ContractionForm, and every other kernel around an op can address its operands. Equal copies are
// one. Later passes keep this: the pass finds nothing to do in their module.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool materialize(Module& module);

}  // namespace sinter
