// Views of values that are computed element by element are taken of their operands, so that the
// elements are computed where, and in the order in which, they are read.
//
//   %c = concat %q, %k, %v {axis = 0} : [3, H, N, 8]
//   %t = transpose %c {axes = [2, 0, 1, 3]}       =>   %t = concat %q', %k', %v' {axis = 1}
//
//   %m = mul %g, %sin : [N, 64]                        %a = slice %g ..., %b = slice %sin ...
//   %s = slice %m {begin = 0, size = 32}          =>   %s = mul %a, %b
//
// A transposition moves where a value is read in that order alone, and rows of the last axis stay
// whole: the gradient of a product whose result was split into queries, keys and values is such a
// concatenation, and rotary embeddings are such formulas. A slice moves where a value is read by
// slices alone that do not overlap, and by formulas behind them. No bit changes: the ops are
// element by element, and no reduction moves.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool moved_views(Module& module);

}  // namespace sinter
