// The number of a constant op.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// The number of a `constant` of a float type, as its type stores it; nullopt for another op.
inline std::optional<float> float_constant(const Op& op) {
  if (op.kind != OpKind::constant || !is_float(op.type.dtype)) return std::nullopt;
  return op.attrs.get<Number>(AttrName::value).to_float(op.type.dtype);
}

}  // namespace sinter
