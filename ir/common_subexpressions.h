// Merging of ops that compute the same value.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "ir/graph.h"

namespace sinter {

/// Redirects every use of an op to the first op of the same kind, operands, attributes and type;
/// the later one is left without users, for remove_dead_ops. Leaves and appends are kept apart. An
/// op whose name `is_fresh` takes over the name of a merged one that is not.
void merge_common_subexpressions(Graph& graph, llvm::function_ref<bool(std::string_view)> is_fresh);

}  // namespace sinter
