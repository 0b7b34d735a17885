// Functions that the records of attention families share.
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

/// A kernel of few tokens reads early which rows a token sees, and all rows of the caches that this
/// call does not append.
EarlyWish attention_early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols);
/// The cost of a kernel of few tokens, which is the time to read the keys.
std::optional<KernelCost> few_tokens_attention_cost(const GroupView& group, int64_t min_threads);

}  // namespace sinter
