// Ops of a few instructions. Passes compute them again rather than write and read their results.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// An element of the result needs that element of each operand alone.
inline bool is_by_element(const Op& op) {
  return op_class(op) == OpClass::elementwise || op.kind == OpKind::cast ||
         op.kind == OpKind::where;
}

/// Takes a few instructions an element.
inline bool is_cheap(const Op& op) {
  return is_by_element(op) && op_info(op.kind).instructions == 0;
}

/// The operands broadcast against the result: elementwise ops, and composites of such ops.
inline bool has_elementwise_form(const Op& op) {
  switch (op.kind) {
    case OpKind::broadcast:
    case OpKind::copy:
    case OpKind::silu:
    case OpKind::gelu:
    case OpKind::gelu_tanh:
    case OpKind::quick_gelu:
    case OpKind::relu:
      return true;
    default:
      return is_by_element(op);
  }
}

}  // namespace sinter
