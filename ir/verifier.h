// Checks every invariant of a module; the list stands at the top of verifier.cpp.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// The place of a broken invariant: a part of the module and, in a graph, one of its ops.
struct Place {
  enum class Part : uint8_t { module, symbol, weight, state, entry };
  Part part = Part::module;
  uint32_t index = 0;  // among the parts of that kind
  ValueId op;          // invalid: the part itself
};

/// A broken invariant; the error's `what` begins with its number and names the op.
struct Violation {
  Error error;
  Place place;
};

/// The first broken invariant, nullopt if all hold. Linear in the size of the module.
std::optional<Violation> find_violation(const Module& module);
/// The same for a graph alone, whose leaves have no module: its ops may write inputs as states.
std::optional<Violation> find_violation(const Graph& graph, llvm::ArrayRef<Symbol> symbols);

/// find_violation as an error whose `where` names the place.
Status verify(const Module& module);

}  // namespace sinter
