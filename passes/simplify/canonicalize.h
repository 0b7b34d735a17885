// Brings a graph into the form that the other passes expect, without changing any value.
//
//   %a = mul %x, %c      %b = mul %x, %c      =>   %a = mul %x, %c
//   %v = reshape %u {dims = [4, 6]}, u [4, 6] =>   uses of %v read %u
//
// Common subexpressions are merged (the earlier name stays), chains of one kind of view are joined,
// views and casts that change nothing vanish, elementwise ops of constants are folded, literals of
// an entry become weights, dead ops, weights and states go.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool canonicalize(Module& module);

}  // namespace sinter
