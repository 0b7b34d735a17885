// The floating-point operations of an op: the column `flops` of ops.def at given sizes.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "ir/type_sizes.h"

namespace sinter {

/// The sizes of a call.
struct CallSizes {
  llvm::ArrayRef<Symbol> symbols;
  llvm::ArrayRef<int64_t> symbol_values;
  /// Rows of a cache that a token sees, or those of the op's window where these are fewer. Absent:
  /// every token sees all rows of the cache, whatever the window.
  std::optional<int64_t> visible_rows = {};
};

double flops(const Graph& graph, const Op& op, const CallSizes& call);

/// The number of rows of `cache` that a token sees.
double rows_seen(const Op& op, const TensorType& cache, const CallSizes& call);

}  // namespace sinter
