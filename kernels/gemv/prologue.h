// What a group computes for the operand of its gemv.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// A gemv's kernel can read x [N, K] as it is: dense, or short enough to be gathered.
bool is_gemv_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols);

/// The gemv's operand is what stands in memory: nothing in the group computes it, and it is
/// dense.
bool has_direct_operand(const Graph& group, ValueId anchor);

/// The values of a group that are computed for its gemv's operand, the operand and what it is
/// computed from among them, and their roundings to be stored; by value.
std::vector<bool> gemv_prologue(const Graph& group, ValueId anchor);

}  // namespace sinter
