// Sizes and types as plan.json spells them, and the parts of a plan that are text IR.
#pragma once

#include "plan/program.h"

namespace sinter::plan_text {

/// Features that this library can read; a plan lists those that it needs.
inline constexpr std::string_view kFeatures[] = {
    "collective", "copy",       "exact_integers", "gemm",        "gemm_epilogue", "in_place",
    "invariant",  "row_checks", "states",         "tensor_maps", "variants"};

/// Reads what to_string(SymExpr) writes: "4096*N*H - 32".
Result<SymExpr> parse_expr(std::string_view text, llvm::ArrayRef<Symbol> symbols);
/// Reads what to_string(TensorType) writes: "f16[N, 4096]".
Result<TensorType> parse_type(std::string_view text, llvm::ArrayRef<Symbol> symbols);

/// Symbols, weights and states as a module without entries.
std::string print_tables(const Program& program);

}  // namespace sinter::plan_text
