// Side results: what a kernel stores of a value's elements, which it has in registers, beside the
// value or in its place, in another shape. Alone such an op is a kernel of its own, with the same
// bits. Which kernels store a kind, families say (KernelFamily::side_result).
#pragma once

#include <optional>

#include "ir/graph.h"

namespace sinter {

/// kind, and the function that finds it in a graph.
#define SINTER_SIDE_RESULTS(X)     \
  X(block_sums, as_block_sums)     \
  X(placed_value, as_placed_value) \
  X(column_runs, as_column_runs)

enum class SideKind : uint8_t {
#define X(kind, find) kind,
  SINTER_SIDE_RESULTS(X)
#undef X
};
inline constexpr SideKind kSideKinds[] = {
#define X(kind, find) SideKind::kind,
    SINTER_SIDE_RESULTS(X)
#undef X
};

/// A side result that a kernel can store.
struct SideResult {
  int64_t size = 0;  // block_sums: rows of a block; column_runs: runs; placed_value: 0
  /// True: the kernel stores it for one value of the epilogue, in the order of the anchor's result.
  /// False: for the results of the anchor and its companions.
  bool of_epilogue = false;
};

/// An op of a graph that may be a side result.
struct SideOp {
  ValueId source;    // the value whose elements it takes; callers check that a kernel computes it
  ValueId own;       // the last value before the op that only side results need in memory
  int64_t size = 0;  // SideResult::size
};

/// Sums of blocks of neighbouring rows of a value:
///
///   %blocks = reshape %x                    %x: 16-bit [.., N, D]; [.., N / size, size, D]
///   %wide = cast %blocks {dtype = f32}      may also stand before the reshape
///   %sums = reduce_sum %wide {axes}         f32[.., N / size, 1, D]
std::optional<SideOp> as_block_sums(const Graph& graph, ValueId id);

/// A `place` of a value, or a `copy` that gives it other axes.
std::optional<SideOp> as_placed_value(const Graph& graph, ValueId id);

/// A `run_sums` (ir/column_runs.h).
std::optional<SideOp> as_column_runs(const Graph& graph, ValueId id);

/// nullopt: the op `id` is no side result of this kind.
std::optional<SideOp> as_side_result(SideKind kind, const Graph& graph, ValueId id);

}  // namespace sinter
