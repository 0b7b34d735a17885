#include "ir/matvec_ring.h"

#include "ir/sym_expr.h"

namespace sinter {

std::string MatvecProduct::key() const {
  return fmt::format("{}[{}, {}] splits={} tokens={}", to_string(dtype), rows, length, splits,
                     tokens);
}

MatvecProduct matvec_product(const Graph& graph, const Op& op, llvm::ArrayRef<Symbol> symbols) {
  const TensorType& matrix = graph[op.operands[1]].type;
  return {.dtype = matrix.dtype,
          .rows = matrix.dims[0].constant(),
          .length = matrix.dims[1].constant(),
          .splits = op.attrs.get<int64_t>(AttrName::splits),
          .tokens = SymExpr(op.type.dims[0]).upper_bound(symbols)};
}

}  // namespace sinter
