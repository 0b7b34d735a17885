#include "kernels/custom/parts.h"

#include <llvm/ADT/STLExtras.h>

namespace sinter {

ValueId custom_anchor(const Graph& group) {
  const auto at =
      llvm::find_if(group.ops(), [](const Op& one) { return one.kind == OpKind::custom; });
  SINTER_CHECK(at != group.ops().end(), "a group without a custom op");
  return {static_cast<uint32_t>(at - group.ops().begin())};
}

SymExpr custom_rows(const Op& op) {
  const DimsRef dims = op.type.dims;
  return volume(dims.take_front(custom_row_axes(custom_op_of(op), dims.size())));
}

}  // namespace sinter
