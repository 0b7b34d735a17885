// Which results of a kernel of elements may be written in the memory of an operand.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// A kernel that computes the group element by element may write output `output` in the memory of
/// input `input`: every op of the group is a formula per element, a view, rows of a table or an
/// append; the output's element at an index needs of the input the element at that index alone, in
/// row-major order; no other output needs the input; and their elements have equally many bytes.
bool may_overwrite(const Graph& group, size_t output, size_t input, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
