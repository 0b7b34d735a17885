// Integers and truth values that are the same in every call are said by their places:
//
//   %i = iota {axis = 0}   %j = add %i, 1   %k = sub %j, 1     =>  %k = iota {axis = 0}
//   %z = cumulative_sum of zeros                               =>  %z = constant {value = 0}
//   %p = embedding %table, %k        %table: iota along rows   =>  %p = iota
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool fold_positions(Module& module);

}  // namespace sinter
