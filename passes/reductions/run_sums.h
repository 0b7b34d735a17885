// Sums down columns that read what reductions of rows read are made by the kernel of the rows: it
// has every element in a register, and the sums down columns would read all of it again. A norm's
// gradients are such sums, and so is the gradient of a bias that was added before the norm:
//
//   %weight = reduce_sum %gy {axes = [0]} : f32[1, 768]
//   %bias = reduce_sum %g {axes = [0]} : f32[1, 768]
// =>
//   %runs = run_sums %gy, %g {runs = 128} : f32[128, 2, 768]
//   %part = slice %runs {axis = 1, begin = 0, size = 1} : f32[128, 1, 768]
//   %padded = concat %part, %zeros {axis = 1} : f32[128, 8, 768]
//   %joined = reduce_sum %padded {axes = [0, 1]} : f32[1, 1, 768]
//   %weight = copy(reshape %joined) : f32[1, 768]                       and %bias alike
//
// No bit changes (ir/column_runs.h). The rows have a constant number. With few rows, or few
// columns, two kernels take less time than one whose lanes walk rows in turn.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool run_sums(Module& module);

}  // namespace sinter
