// What a group computes for the operand of its matvec.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace sinter {

/// A matvec's kernel can read x [N, K] as it is: dense, or short enough to be gathered.
bool is_matvec_operand(const Graph& graph, ValueId x, llvm::ArrayRef<Symbol> symbols);

/// The matvec's operand is what stands in memory: nothing in the group computes it, and it is
/// dense.
bool has_direct_operand(const Graph& group, ValueId anchor);

/// The values of a group that are computed for its matvec's operand, the operand and what it is
/// computed from among them, and their roundings to be stored; by value.
std::vector<bool> matvec_front(const Graph& group, ValueId anchor);

}  // namespace sinter
