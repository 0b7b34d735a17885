// Linears that read the same value become one with concatenated weights, at most as many as a
// concat has operands; their results are slices.
//
//   %q = linear %x, %wq                  %qkv = linear %x, %wqkv
//   %k = linear %x, %wk            =>    %q   = slice %qkv {axis = 1, begin = 0, size = 64}
//   %v = linear %x, %wv                  %k   = slice ..., %v = slice ...
//
// Requires weights that no op but the merged linears uses; leaves one weight function that
// concatenates the others', shared by all entries.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// True if something changed.
bool merge_linears(Module& module);

}  // namespace sinter
