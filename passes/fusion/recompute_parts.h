// Elementwise values that another elementwise op reads at other places are computed there, so that
// they need no kernel of their own:
//
//   %n = neg %x2   %r = concat %n, %x1     =>   %r = where (position < size of a part),
//                                                    neg of x2 repeated, x1 repeated
//   %f = cast %freq : f32[16]              =>   %f = cast (broadcast of freq to [200, 16])
//   %m = mul %f, %p : f32[200, 16]
//
// So are the parts of a concatenation that have one size, and values that are computed from inputs,
// weights and generators alone, for a larger reader: where nothing else reads them, or they are
// made of generators alone. A cast to a wider type is computed for each larger reader. Views move
// above what is computed. No bit changes: every op is element by element.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool recompute_parts(Module& module);

}  // namespace sinter
