// The order of kernels in which intermediate values take less memory:
//
//   %d  = kernel 0      large
//   %dx = kernel 1 %d
//   %n  = kernel 2 %dx  makes more than it frees
//   %dw = kernel 3 %d   an output; %d is free behind it
//   =>
//   0, 1, 3, 2
#pragma once

#include "ir/grouping.h"

namespace sinter {

/// The groups in an order in which they can run. A group that makes more bytes of intermediate
/// values than it frees comes behind one of the groups next to it that can run and frees the most,
/// at least kMinFreedBytes; else the order is kept. It is kept as a whole where an op writes a
/// state, since its tokens are few. Values of symbolic sizes count as empty.
Grouping memory_order(const Graph& graph, Grouping grouping);

inline constexpr int64_t kMinFreedBytes = int64_t{1} << 20;

}  // namespace sinter
