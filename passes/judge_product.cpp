// The judge's question about a library call: which ops it may do beside its product.
//
//   %p = linear %x, %w, %b        one call: C = gelu_tanh(A B + b)
//   %y = gelu_tanh %p
#include "ir/product_epilogue.h"
#include "passes/fusion_state.h"

namespace sinter {

bool FusionState::join_product(Question& q, Members members) const {
  const std::optional<ProductEpilogue> epilogue = product_epilogue(graph_, members);
  if (!epilogue) return false;
  // The call stores its last value alone.
  for (ValueId member : members) {
    if (member == epilogue->result) continue;
    if (is_output_[member.index]) return false;
    for (ValueId user : users_[member.index])
      if (!llvm::is_contained(members, user)) return false;
  }
  q.merged = shapes_[dag_.find(epilogue->product)];
  return true;
}

}  // namespace sinter
