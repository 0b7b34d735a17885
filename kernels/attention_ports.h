// Ports, addresses and permissions of attention kernels whose blocks compute their own queries.
#pragma once

#include "kernels/family.h"

namespace sinter {

/// A block computes which of the keys its tokens see.
Ports row_number_ports(const Graph& graph, const Op& op);
/// A block computes its own queries, once, which of the keys its tokens see, and gives its own
/// elements of the result.
Ports attention_ports(const Graph& graph, const Op& op);

/// Queries and row numbers are computed through their views; keys and values are read by heads of
/// neighbouring elements.
bool attention_addresses(const Graph& graph, const Op& op, size_t operand,
                         llvm::ArrayRef<Symbol> symbols);

/// The permission of the families of many tokens.
Permission attention_permission(const Recipe& recipe);

}  // namespace sinter
