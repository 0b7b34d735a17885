// A concatenation that is read in another order of its axes alone is made in that order. The
// gradient of a product whose result was split into queries, keys and values is such a value:
//
//   %c = concat %q, %k, %v {axis = 0} : [3, H, N, 8]
//   %t = transpose %c {axes = [2, 0, 1, 3]}                =>   %t = concat %q', %k', %v' {axis =
//   1}
//
// Rows of the last axis stay whole. What reads %t, a product for one, then needs no copy of it.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool permuted_concats(Module& module);

}  // namespace sinter
