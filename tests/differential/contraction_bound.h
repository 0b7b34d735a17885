// How far rounding may move a contraction (linear, einsum, attention), an expert_linear or a
// reduce_sum from its float64 value. The bounds hold whatever the order of the float32 sums is, so
// that no element misses them by luck.
#pragma once

#include "ir/graph.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

/// By element, row-major: the value in float64, and the largest error of what float32 has before it
/// rounds to the result's type. Infinite errors: sums that may leave the range of float32, and
/// attention that sees infinities or NaN.
struct BoundedValue {
  std::vector<double> values, errors;
};

/// Op `op` of `graph` on these operands.
Result<BoundedValue> bounded_contraction(const Graph& graph, const Op& op,
                                         llvm::ArrayRef<const HostTensor*> operands,
                                         llvm::ArrayRef<Symbol> symbols,
                                         llvm::ArrayRef<int64_t> symbol_values);

/// Elements that were compared with a bound, and those that have none.
struct BoundedElements {
  int64_t compared = 0, unbounded = 0;
};

/// Fails where an element is outside of what its bound rounds to; NaN must be NaN. Adds to
/// `elements`.
Status check_bound(std::string_view what, const HostTensor& tensor, const BoundedValue& bounded,
                   BoundedElements& elements);

}  // namespace sinter
