// The elements of a value that a read reaches, for given values of the symbols.
#pragma once

#include "ir/index_set.h"
#include "ir/op_facts.h"

namespace sinter {

/// The elements of `root`, a value of these dims, that the read reaches. Exact where every axis is
/// addressed by loop variables, or digits of loop variables, of its own, as views do it; otherwise
/// an upper bound: as many elements as the loop has iterations. `read.loaded` must be false.
IndexSet region(const Read& read, DimsRef root, llvm::ArrayRef<int64_t> symbol_values);

/// The same of a view: the elements of its root that the value's own elements are.
IndexSet region(const Graph& graph, ValueId id, llvm::ArrayRef<int64_t> symbol_values);

}  // namespace sinter
