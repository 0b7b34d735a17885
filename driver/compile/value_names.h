// Names of values as people give them.
#pragma once

#include <string>

#include "ir/graph.h"

namespace sinter {

/// Without the % that the text form writes before names, unless a value is called so.
std::string value_name(const Module& module, const std::string& name);

/// A hint: up to three names like one that no entry has, those first to which fewer edits lead;
/// else where the names stand.
std::string near_value_names(const Module& module, const std::string& name);

}  // namespace sinter
