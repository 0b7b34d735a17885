// Ops that anybody may compute become ops of kernel families that take their shapes:
//
//   %y = linear %x, %w, %b                    x [N, K], N <= 8, w a weight
//   =>
//   %y = linear %x, %w, %b {order = gemv, splits = 1}
//
// The families are asked in the order of the registry; the first that the recipe allows and that
// takes an op has it.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "kernels/recipe.h"

namespace sinter {

/// The entry's graph with the families' ops where the symbols have these ranges; nullopt: no family
/// takes an op.
std::optional<Graph> with_chosen_kernels(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                         const Recipe& recipe);

/// The casts of quantized matrices to a 16-bit type, which Recipe::Codes::rounded asks for.
std::vector<ValueId> rounded_matrices(const Graph& graph);

/// True if something changed.
bool choose_kernels(Module& module, const Recipe& recipe = {});

}  // namespace sinter
