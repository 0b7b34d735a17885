// The input of a composite's decomposition, and the names of the decompositions. Inner interface of
// decompose.cpp and of the files that define decompositions.
#pragma once

#include "ir/builder.h"

namespace sinter {

/// Operands, attributes and the builder of one composite. No call that appends an op stands beside
/// another in one argument list: compilers differ in which comes first.
struct Decomposition {
  OpKind kind;
  Builder& b;
  llvm::ArrayRef<ValueId> operands;
  const Attributes& attrs;
  std::string name;

  const TensorType& type(ValueId id) const { return b.type(id); }
  ValueId constant(double value) { return b.constant(value, DType::f32); }
  /// x in float32.
  ValueId wide(ValueId x) { return b.cast(x, DType::f32); }
  /// The reduction of each row, the last axis.
  ValueId row(OpKind reduction, ValueId x) {
    return b.reduce(reduction, x, {static_cast<int64_t>(type(x).rank()) - 1});
  }

  /// The value, an op of this decomposition, as the result: in `dtype`, with the composite's name.
  ValueId finish(ValueId value, DType dtype) {
    if (type(value).dtype != dtype) return b.cast(value, dtype, name);
    if (!name.empty()) b.graph()[value].name = name;
    return value;
  }
  ValueId finish(ValueId value) { return finish(value, type(operands[0]).dtype); }
};

/// Appends the composite's primitives and returns the value that equals its result. Every composite
/// has one: decompose_NAME.
using DecompositionRule = ValueId(Decomposition&);
#define SINTER_OP(name, ...) DecompositionRule decompose_##name;
#include "ir/ops.def"

}  // namespace sinter
