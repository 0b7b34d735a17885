// A concatenation of values that kernels can store anywhere is no kernel: each part is placed where
// the whole value is, by the kernel that computes it. So are the gradients of queries, keys and
// values, which the next product reads as one matrix:
//
//   %g = concat %q, %k, %v {axis = 2} : [B, N, 3 * D]
//                                             =>
//   %a = place %q {axis = 2, begin = 0, size = 3 * D}
//   %b = place %k, %a {axis = 2, begin = D, size = 3 * D}
//   %g = place %v, %b {axis = 2, begin = 2 * D, size = 3 * D}
//
// Parts that one kernel computes follow one another, so that no other kernel comes between them.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool placed_parts(Module& module);

}  // namespace sinter
