// The sides of a group around a caller's op.
#pragma once

#include "ir/custom_op.h"
#include "ir/graph.h"
#include "ir/sym_expr.h"

namespace sinter {

/// How many blocks compute the op.
SymExpr custom_rows(const Op& op);

inline bool is_open_operand(const CustomOp& record, size_t operand) {
  return operand < record.open_operands.size() && record.open_operands[operand];
}

}  // namespace sinter
