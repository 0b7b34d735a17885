// A group as a graph of its own.
#pragma once

#include "ir/grouping.h"

namespace sinter {

struct ExtractedGroup {
  Graph graph;  // inputs x0, x1, ..: the roots of the reads; names are canonical
  llvm::SmallVector<ValueId, 8> inputs;   // the roots, in the order of graph.inputs
  llvm::SmallVector<ValueId, 4> outputs;  // the members whose values leave the group
};

/// By value: 1 if another group reads it, or it is an output of the graph, or an append, or holds
/// row numbers that are to be checked.
std::vector<uint8_t> values_that_leave(const Graph& graph, const Grouping& grouping,
                                       llvm::ArrayRef<Symbol> symbols);

/// Group number `group` of the grouping; `leaves` from values_that_leave.
ExtractedGroup extract_group(const Graph& graph, const Grouping& grouping, uint32_t group,
                             llvm::ArrayRef<uint8_t> leaves);

/// Gives the graph names of its own, so that equal groups are equal and no name from a file reaches
/// a kernel's text: inputs become x0, x1, ..., values that are no leaves v0, v1, ...
void set_canonical_names(Graph& graph);

}  // namespace sinter
