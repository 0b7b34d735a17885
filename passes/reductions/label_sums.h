// A sum along a row in which all but one element are zeros, because a label names the element that
// is not, is a choice: what stands at the label, or zero. The loss of labels and its gradient are
// written so; a sum would walk the row, and an element that it needs of a later walk costs another.
//
//   %at = equal %iota, %label                    =>   %x = gather %logits, label
//   %y = sub %logits, %max                            %y = sub %x, %max
//   %s = reduce_sum (where %at, %y, 0)                %s = (where (label in the row), %y, 0) + 0
//
// Values that are computed element by element are computed at the label alone, down to those that
// stand in memory. Casts of the row before its sum become casts of the choice. No bit changes: a
// sum of zeros and one number is that number, of -0 it is +0.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool label_sums(Module& module);

}  // namespace sinter
