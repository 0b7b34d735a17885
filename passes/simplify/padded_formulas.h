// A formula of a slice, with a constant behind it, is a formula of what was sliced and a choice.
// The gradient of a loss is such a value, where a product of padded extents made its logits:
//
//   %s = slice %x {axis = 1, begin = 0, size = 50257}        %e = exp %x : [N, 50264]
//   %e = exp %s : [N, 50257]                            =>   %r = where (position < 50257), %e, 0
//   %r = concat %e, %zeros {axis = 1} : [N, 50264]
//
// Its rows are then whole chunks of memory, and one kernel computes it. A reduction of rows that
// the formula reads too is one of as many elements, of which those behind the slice change nothing:
// one kernel reads the row for both.
//
//   %t = reduce_sum %e : [N, 1]            =>   %t = reduce_sum (where (position < 50257), %e, 0)
//
// No bit changes: lanes of a sum start at +0 and of a maximum at -inf, so that these numbers behind
// a row leave every lane as it is. Both sizes have as many chunks, so that each element keeps its
// lane.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool padded_formulas(Module& module);

}  // namespace sinter
