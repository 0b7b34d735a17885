// The text form of a module: canonical, and parse(print(m)) == m.
#pragma once

#include "ir/graph.h"

namespace sinter {

std::string print_module(const Module& module);
/// A graph alone, as the body of an entry prints.
std::string print_graph(const Graph& graph, llvm::ArrayRef<Symbol> symbols);

/// Reads and verifies. Errors carry `file`:line:column.
Result<Module> parse_module(std::string_view text, std::string_view file);

}  // namespace sinter
