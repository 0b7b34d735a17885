// Products of few tokens, whose time is that of reading a matrix, become matvecs: Sinter's own
// kernel with a stated order of summation, which neighbours may join.
//
//   %y = linear %x, %w, %b   x [N, K], N <= 8, w a weight   =>   %y = matvec %x, %w, %b {splits =
//   1}
//
// Others stay linears, calls of a library: many tokens, matrices that are computed or read through
// a view that moves elements, rows that are no multiple of 8 elements.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool choose_matvec(Module& module);

/// A matvec's kernel can read x [N, K] as it is: dense, or short enough to be gathered.
bool is_matvec_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
