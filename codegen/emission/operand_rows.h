// The addresses of an anchor's operands, for families whose kernels read rows of memory.
#pragma once

#include <string>

#include "codegen/emission/emit_context.h"

namespace sinter {

class OperandRows {
 public:
  /// Fails where the group computes anything but its anchor.
  static Result<OperandRows> create(const EmitContext& context);
  /// For an anchor whose kernel may compute other ops too.
  explicit OperandRows(const EmitContext& context)
      : context_(&context), op_(&context.anchor_op()) {}

  const Op& op() const { return *op_; }
  /// "x0": the pointer of an operand that is read as it stands in memory.
  Result<std::string> pointer(size_t operand) const;
  /// "x0 + 64, 4096ll": the first element and the row stride of a matrix; notes its alignment.
  Result<std::string> rows(size_t operand);
  /// All matrices that rows() was asked for begin and continue at multiples of 8 elements.
  bool aligned() const { return aligned_; }

 private:
  std::string root(size_t operand) const;

  const EmitContext* context_;
  const Op* op_;
  bool aligned_ = true;
};

}  // namespace sinter
