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
#include "ir/match.h"

namespace sinter {

std::optional<ValueId> choose_dequantize(Builder& b, const Op& op, Tokens, const Recipe&) {
  ValueId packed;
  if (op.kind != OpKind::embedding ||
      !match::dequantize(match::value(packed))(b.graph(), op.operands[0]) || !b.may_read(packed))
    return std::nullopt;
  const Attributes codes = b.graph()[op.operands[0]].attrs;
  const ValueId rows =
      b.op(OpKind::embedding, {packed, op.operands[1]}, op.attrs, op.name + ".packed");
  return b.op(OpKind::dequantize, {rows}, codes, op.name);
}

}  // namespace sinter
