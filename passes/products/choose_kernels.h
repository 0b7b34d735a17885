// Ops that anybody may compute become ops of kernel families that take their shapes:
//
//   %y = linear %x, %w, %b                    x [N, K], N <= 8, w a weight
//   =>
//   %y = linear %x, %w, %b {order = gemv, splits = 1}
//
// The families are asked in the order of the registry; the first that the recipe allows and that
// takes an op has it. Where a recipe allows a family only what gains, and whether an op gains
// depends on its group, a trial decides: in a copy of the entry all such ops are the family's, the
// passes that follow and the fusion engine run, and each op is judged by the group that it has
// then. The trial has strict numerics and no forbidden or required fusions, so that all plans of a
// module have the same orders. Symbols are at their largest, as they are for the choices of all
// families.
#pragma once

#include <optional>
#include <vector>

#include "ir/graph.h"
#include "kernels/recipe.h"
#include "passes/fusion/fusion.h"

namespace sinter {

/// Chooses the ops of one entry for several ranges of its symbols, by one trial.
class KernelChooser {
 public:
  /// `entry` and `recipe` outlive the chooser.
  KernelChooser(const Entry& entry, llvm::ArrayRef<Symbol> symbols, const Recipe& recipe);

  /// The entry's graph with the families' ops where the symbols have these ranges, each within the
  /// trial's; nullopt: no family takes an op.
  std::optional<Graph> choose(llvm::ArrayRef<Symbol> symbols) const;

 private:
  const Entry& entry_;
  const Recipe& recipe_;
  std::optional<Fusion> trial_;  // absent: no op's gain depends on its group
};

/// The choice by a trial with the symbols of these ranges.
std::optional<Graph> with_chosen_kernels(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                         const Recipe& recipe);

/// The casts of quantized matrices to a 16-bit type, which Recipe::Codes::rounded asks for.
std::vector<ValueId> rounded_matrices(const Graph& graph);

}  // namespace sinter
