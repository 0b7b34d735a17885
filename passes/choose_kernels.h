// Ops that anybody may compute become ops of kernel families that take their shapes:
//
//   %y = linear %x, %w, %b                    x [N, K], N <= 8, w a weight
//   =>
//   %y = linear %x, %w, %b {order = gemv, splits = 1}
//
// The families are asked in the order of the registry; the first that takes an op has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace sinter {

/// Kernel families, by name, and what is taken for an op that they choose.
struct FamilyChoice {
  std::vector<std::string> left_out = {};   // they choose no ops
  std::vector<std::string> requested = {};  // of those with KernelFamily::on_request
  /// Attention in primitives may lose roundings of its scores (recognize_attention.h).
  bool relaxed_attention = false;
  /// A product of many tokens and a quantized matrix reads the matrix rounded to the tokens' type.
  bool rounded_matrices = false;
  /// A product whose graph rounds a quantized matrix to the tokens' type reads it unrounded: fast
  /// numerics.
  bool unrounded_matrices = false;
};

/// The entry's graph with the families' ops where the symbols have these ranges; nullopt: no family
/// takes an op.
std::optional<Graph> with_chosen_kernels(const Entry& entry, llvm::ArrayRef<Symbol> symbols,
                                         const FamilyChoice& choice);

/// The casts of quantized matrices to a 16-bit type, which FamilyChoice::rounded_matrices asks for.
std::vector<ValueId> rounded_matrices(const Graph& graph);

/// True if something changed.
bool choose_kernels(Module& module, const FamilyChoice& choice = {});

}  // namespace sinter
