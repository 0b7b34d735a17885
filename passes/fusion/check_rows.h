// Row numbers that the module computes may name rows that are not there.
//
//   %i = add %n, %n                         %i = add %n, %n
//   %v = slice %i {...}                 =>  %v = slice %i {...}
//   %y = embedding %t, %v                   %c = copy %v
//                                           %y = embedding %t, %c {checked = 1}
//
// Afterwards every op with row numbers that are neither an entry's input nor known to be in range
// is `checked` (ops.def says what that means), and these numbers are a value in memory, which the
// runtime looks at after the call. Runs last: canonicalize would not keep the copies. An attention
// without an order stays as it is, so choose_kernels and expand_attention run before.
//
// In a decode step (entry tokens one_each) an op whose addresses are an input X is `checked` too
// where `sample` gives the module's output next.X: a device may begin the next step before the host
// sees that logits chose no token, -1.
//
// With `device_inputs`, nobody looks at inputs before a call: ops whose addresses they are become
// `checked` too, and the inputs are looked at after the call, where they are.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool check_rows(Module& module, bool device_inputs);

}  // namespace sinter
