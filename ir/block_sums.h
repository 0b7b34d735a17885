// Sums of blocks of neighbouring rows of a value:
//
//   %blocks = reshape %x                    %x: 16-bit [.., N, D]; [.., N / rows, rows, D]
//   %wide = cast %blocks {dtype = f32}      may also stand before the reshape
//   %sums = reduce_sum %wide {axes}         f32[.., N / rows, 1, D]
//
// A kernel that has such a block of %x in registers stores its sums beside it.
#pragma once

#include <optional>

#include "ir/graph.h"

namespace sinter {

struct BlockSums {
  ValueId source;    // %x: computed by an op, not a view
  ValueId wide;      // the cast
  int64_t rows = 0;  // of a block; N is a multiple of it
};

/// The source and the cast of the sum `id`; nullopt: it is no such sum.
std::optional<BlockSums> as_block_sums(const Graph& graph, ValueId id);

}  // namespace sinter
