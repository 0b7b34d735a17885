// The input of an op's rule of inference, and the rules' names. Inner interface of infer.cpp and of
// the files that define rules.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// An op whose result type is asked for. Its counts of operands and attributes are checked.
struct Inference {
  OpKind kind;
  llvm::ArrayRef<TensorType> operands;
  const Attributes& attrs;
  llvm::ArrayRef<Symbol> symbols;

  /// The error that `constraint` is broken.
  tl::unexpected<Error> reject(int constraint, std::string what) const {
    return fail(fmt::format("{}: {} (C{})", name(), what, constraint));
  }
  /// The order's name, if there is one, or the op's.
  std::string_view name() const;
  std::string show(const TensorType& type) const { return to_string(type, symbols); }
  std::string show(DimsRef dims) const {
    return to_string(TensorType{DType::f32, Dims(dims)}, symbols).substr(3);
  }

  Status check_axis(int64_t axis, size_t rank) const;
  /// Checks the axes of one op, which must ascend.
  Status check_axes(llvm::ArrayRef<int64_t> axes, size_t rank) const;
};

/// The result type, or which constraint the op breaks. Elementwise ops share one rule, leaves have
/// none, every other op has its own: infer_NAME.
using InferenceRule = Result<TensorType>(const Inference&);
InferenceRule infer_elementwise;
/// Checks an order's own constraints, beyond its op's; `result`: the type of the op's result.
using OrderConstraints = Status(const Inference&, const TensorType& result);
#define SINTER_OP(name, ...) InferenceRule infer_##name;
#include "ir/ops.def"
#define SINTER_ORDER(name, ...) OrderConstraints check_##name;
#include "ir/orders.def"

/// The type of the result of the attention that an op belongs to: its first five operands are the
/// attention's, and operand `mask`, if there is one, is the attention's mask.
Result<TensorType> infer_own_attention(const Inference& op, size_t mask);

}  // namespace sinter
