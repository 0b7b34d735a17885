// The one place that says what a composite op means, in primitives, casts included.
#pragma once

#include "ir/builder.h"

namespace sinter {

/// Appends the decomposition of a composite op `kind` applied to `operands` (values of the
/// builder's graph) and returns the value that equals its result. The last op gets `name` if not
/// empty.
ValueId decompose(Builder& builder, OpKind kind, llvm::ArrayRef<ValueId> operands,
                  const Attributes& attrs, std::string name = {});

/// A copy of `graph` in which every composite is decomposed; names of the composites stay on the
/// values that replace them. Common subexpressions are merged, dead ops removed.
Graph decompose_all(const Graph& graph, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
