// Kernel text made ready for a C++ compiler.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "ir/error.h"

namespace sinter {

/// `text` with every `__shared__` declaration turned into a reference to storage that the block
/// runner owns. Lines keep their numbers.
///   __shared__ float a[32];        ->  using a_type = float[32]; a_type& a = *...;
///   extern __shared__ float b[];   ->  float* b = ...;
Result<std::string> rewrite_shared(std::string_view text);

/// Takes the `#include` lines out of `text` (leaving blank lines) and adds them to `includes`, so
/// that the rest can stand in a namespace.
std::string hoist_includes(std::string_view text, std::set<std::string>& includes);

}  // namespace sinter
