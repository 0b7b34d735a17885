// The work of an op at given sizes: its floating-point operations, the column `flops` of ops.def,
// and the instructions that compute it element by element.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "ir/type_sizes.h"

namespace sinter {

/// The sizes of a call.
struct CallSizes {
  llvm::ArrayRef<Symbol> symbols;
  llvm::ArrayRef<int64_t> symbol_values;
  /// Rows of a cache that a token sees; the op's window, if smaller, limits them. Absent: every
  /// token sees all rows of the cache, whatever the window.
  std::optional<int64_t> visible_rows = {};
};

double flops(const Graph& graph, const Op& op, const CallSizes& call);

/// Instructions that an element of the result of a primitive takes, about; 0 where it is only
/// moved.
int64_t element_instructions(const Op& op);
/// The same of all elements of a call. Ops of classes other than elementwise, composite, choice and
/// reduce have none: products and moves.
double instructions(const Graph& graph, const Op& op, const CallSizes& call);

/// The number of rows of `cache` that a token sees.
double rows_seen(const Op& op, const TensorType& cache, const CallSizes& call);

}  // namespace sinter
