// A group of column reductions made ready for emission: what is computed at every element in front
// of them, and what at every result after them.
#pragma once

#include "codegen/emission/emit_group.h"
#include "ir/column_space.h"

namespace sinter {

struct ColumnForm {
  ColumnSpace space;
  int64_t lanes = 1;                // V of the reductions
  std::vector<ValueId> reductions;  // of the forms' graph
  /// Rows are the outer and the reduced axes, the one stage is the inner axes. Its tasks store the
  /// results that are there at every element.
  GroupForm prologue;
  /// Rows are the outer axes; the stage is the same. Its tasks store results after the reductions,
  /// and themselves.
  GroupForm epilogue;
};

/// Fails if reductions have different spaces, if one follows another, or if a result's elements are
/// neither the operand's nor the reductions'.
Result<ColumnForm> column_form(const Graph& group, llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
