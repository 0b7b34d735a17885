// Rows of a table of codes: the packed rows are gathered, and their elements computed.
//
//   %d = dequantize %p {size = K, codes = F}
//   %y = embedding %d, %ids
//   =>
//   %rows = embedding %p, %ids
//   %y = dequantize %rows {size = K, codes = F}
//
// A row number that names no row gives a packed row of zeros, whose scales are 0.
#include "ir/builder.h"
#include "ir/state_reads.h"

namespace sinter {

std::optional<ValueId> choose_dequantize(Builder& b, const Op& op, Tokens, const Recipe&) {
  if (op.kind != OpKind::embedding) return std::nullopt;
  const Op table = b.graph()[op.operands[0]];
  const ValueId end{static_cast<uint32_t>(b.graph().size())};
  if (table.kind != OpKind::dequantize || is_overwritten(b.graph(), table.operands[0], end))
    return std::nullopt;
  const ValueId rows =
      b.op(OpKind::embedding, {table.operands[0], op.operands[1]}, op.attrs, op.name + ".packed");
  return b.op(OpKind::dequantize, {rows}, table.attrs, op.name);
}

}  // namespace sinter
