// gemv: products whose shapes its kernel can take.
#include "ir/inference.h"
#include "ir/reduction_order.h"
#include "ir/sym_expr.h"
#include "kernels/gemv/order.h"

namespace sinter {

Status check_gemv(const Inference& op, const TensorType&) {
  const TensorType &x = op.operands[0], &w = op.operands[1];
  const int64_t splits = op.attrs.get<int64_t>(AttrName::splits);
  if (splits < 1 || splits > kMaxGemvSplits || (splits & (splits - 1)) != 0)
    return op.reject(
        16, fmt::format("{} splits, must be a power of two, 1 to {}", splits, kMaxGemvSplits));
  if (x.rank() != 2 || w.dims[0].is(0) || w.dims[1].is(0) || w.dims[1].constant() % kChunk != 0)
    return op.reject(16, fmt::format("x {}, w {}: a gemv has rows of a multiple of 8 elements",
                                     op.show(x), op.show(w)));
  const int64_t tokens = SymExpr(x.dims[0]).upper_bound(op.symbols);
  if (tokens < 1 || tokens > kMaxGemvTokens)
    return op.reject(16, fmt::format("{} tokens, a gemv has 1 to {}", tokens, kMaxGemvTokens));
  return {};
}

}  // namespace sinter
