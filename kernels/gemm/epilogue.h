// A linear and what its library call does beside it.
#pragma once

#include <optional>

#include "ir/activation.h"
#include "ir/graph.h"

namespace sinter {

/// result = activation(product + residual), in float32, rounded once. Without residual its id is
/// invalid; a product alone is its own result.
struct ProductEpilogue {
  ValueId product;
  ValueId residual;  // the add's other operand: in memory in its own order, of the result's type
  Activation activation = Activation::none;
  ValueId result;
};

/// `members`, ascending, as one linear, then perhaps an add, then perhaps an activation, each the
/// only reader of the one before in its order of elements; nullopt where they are something else.
/// The library's GELU is an approximation that only 16-bit results do not see: float32 has none.
/// Whether inner values have readers that are no members is the caller's to ask.
std::optional<ProductEpilogue> product_epilogue(const Graph& graph,
                                                llvm::ArrayRef<ValueId> members);

}  // namespace sinter
