// Which results of a kernel of elements may be written in the memory of an operand.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace sinter {

/// A kernel that computes the group element by element may write output `output` in the memory of
/// input `input`: every op of the group is a formula per element, a view, rows of a table or an
/// append; the output's element at an index needs of the input the element at that index alone, in
/// row-major order; and their elements have equally many bytes. Other outputs may need the input
/// where the same thread computes their elements from what it has loaded: they are made of a value
/// that the output is made of too, and both read the input at their own index of its axes alone.
/// None of them replaces the input as a state.
/// Also: the output is a `place`, and the input its base, perhaps through other places.
bool may_overwrite(const Graph& group, size_t output, size_t input, llvm::ArrayRef<Symbol> symbols);

/// The value in memory that a value is, with other axes: views that keep the order of elements are
/// left out. Of other views, themselves.
ValueId same_elements(const Graph& graph, ValueId id);

/// The input whose memory an output of a group must have: the base in which it places a part. By
/// index of the group's inputs; nullopt: the output is no `place`, or begins the value.
std::optional<size_t> placed_input(const Graph& group, size_t output);

}  // namespace sinter
