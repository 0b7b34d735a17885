// Ops whose kernels add in an order of the device's own: the column `own bits` of orders.def, and
// the rows SINTER_DEVICE_ORDER of ops.def.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// The host's bits of the op may differ from the device's at these values of the symbols.
bool has_device_order(const Graph& graph, const Op& op, llvm::ArrayRef<int64_t> symbol_values);

}  // namespace sinter
