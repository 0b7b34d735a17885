// A value that a sum down columns adds and a reduction of rows reads is computed for each of them:
// no kernel makes both, so that the value would be written by one and read by the other. A norm's
// gradients of its weight and of its input are such a pair:
//
//   %y = (x - mean) * rstd                            %y = ...   %y' = ...
//   %weight = reduce_sum (dy * y) {axes = [0]}   =>   %weight = reduce_sum (dy * y') {axes = [0]}
//   %c = reduce_sum (dy * y) {axes = [1]}             %c = reduce_sum (dy * y) {axes = [1]}
//
// So is each cheap value that no other op needs in memory, where what it is computed from is no
// more than to write and to read it; the sum of many gradients is more, and is written. No bit
// changes: the ops are element by element, and each sum adds the same numbers in its order.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool column_operands(Module& module);

}  // namespace sinter
