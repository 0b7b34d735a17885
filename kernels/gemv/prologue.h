// The prologue of a gemv: what a group computes for the operand of its product.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// A gemv's kernel can read x [N, K] as it is: dense, or short enough to be gathered.
bool is_gemv_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols);

/// The gemv's operand is dense and stands in memory: nothing in the group computes it.
bool has_direct_operand(const Graph& group, ValueId anchor);

/// By value of the group: whether it belongs to the prologue. These are the operand, what it is
/// computed from, and conversions of both that are stored.
std::vector<bool> gemv_prologue(const Graph& group, ValueId anchor);

}  // namespace sinter
