// The input of an op's rule of differentiation, and the rules' names. Inner interface of
// gradients.cpp and of the files that define rules.
#pragma once

#include "ir/builder.h"
#include "ir/sym_expr.h"

namespace sinter {

/// An op with the gradient of its result. No call that appends an op stands beside another in one
/// argument list: compilers differ in which comes first.
struct OpGradient {
  Builder& b;
  Op op;             // a copy: the builder's graph grows
  ValueId result;    // the op's
  ValueId gradient;  // of the result, of its type

  TensorType type(size_t operand) const { return b.type(op.operands[operand]); }
  ValueId constant(double value) { return b.constant(value, DType::f32); }
  /// In float32: an operand, the result, its gradient.
  ValueId operand(size_t i) { return wide(op.operands[i]); }
  ValueId value() { return wide(result); }
  ValueId wide(ValueId x) { return b.cast(x, DType::f32); }
  /// The gradient times a factor, or divided by a number, in float32.
  ValueId times(ValueId factor) {
    const ValueId g = wide(gradient);
    return b.mul(g, factor);
  }
  ValueId divided_by(ValueId divisor) {
    const ValueId g = wide(gradient);
    return b.div(g, divisor);
  }
  ValueId where(ValueId condition, ValueId yes, ValueId no) {
    return b.op(OpKind::where, {condition, yes, no});
  }
  /// Appends an op that may break a constraint, which is an error.
  Result<ValueId> try_op(OpKind kind, llvm::ArrayRef<ValueId> operands, Attributes attrs);
  /// The error that the op has no gradient; `why` not for these operands.
  tl::unexpected<Error> has_none(std::string_view why = {}) const;
};

/// Appends the gradient of an operand; an invalid id: the gradient is 0. Operand and result are of
/// float types. The gradient may be of another float type, and may have the extents of the result
/// where the operand broadcasts to them: the caller sums (sum_to) and rounds. Every op but leaves,
/// generators, composites, and elementwise ops of integers and truth values has a rule,
/// gradient_NAME; the rule of an op without a gradient is an error (gradient_none.cpp).
using GradientRule = Result<ValueId>(OpGradient&, size_t operand);
#define SINTER_OP(name, ...) GradientRule gradient_##name;
#define SINTER_ELEMENTWISE(name, ...) GradientRule gradient_##name;
#include "ir/ops.def"

/// The sum of x over the axes along which `dims` are broadcast to x's, with the extents `dims`; in
/// float32 where there is something to add.
ValueId sum_to(Builder& b, ValueId x, DimsRef dims);
/// The extent, if it is a constant or a symbol.
std::optional<Dim> as_dim(const SymExpr& extent);

}  // namespace sinter
