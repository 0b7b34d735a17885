// Names of values as people give them.
#pragma once

#include <llvm/ADT/StringRef.h>

#include <optional>
#include <string>

#include "ir/graph.h"

namespace sinter {

/// Which of the names of computed values a person means: the one that is so called, with or without
/// the % that the text form writes before names; else `name` is a module's, and means the last of
/// those that are called NAME.something. In the order of a graph that is what the module returns.
std::optional<size_t> find_named(llvm::ArrayRef<llvm::StringRef> computed, llvm::StringRef name);

/// The value of a graph that a person means, which may be an input or a weight of that very name.
/// An invalid id: there is none.
ValueId named_value(const Graph& graph, const std::string& name);

/// A hint: up to three names of values and modules like one that no entry has, those first to which
/// fewer edits lead; else where the names stand.
std::string near_value_names(const Module& module, const std::string& name);

}  // namespace sinter
