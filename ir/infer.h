// Shape and type inference; it does the checking of an op's constraints.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// The result type of an op with these operand types, or which constraint it breaks. Constraints
/// are numbered C1.. in infer.cpp; the number stands in the message. Leaves have no inferred type.
Result<TensorType> infer_type(OpKind kind, llvm::ArrayRef<TensorType> operands,
                              const Attributes& attrs, llvm::ArrayRef<Symbol> symbols);

/// NumPy broadcast of two shapes, nullopt where extents differ and neither is 1.
std::optional<Dims> broadcast_dims(DimsRef a, DimsRef b);

/// An einsum spec taken apart: letters by role, as positions in each operand and the result
/// (-1: absent).
struct EinsumAxis {
  char letter;
  int a, b, result;
};
struct EinsumSpec {
  llvm::SmallVector<EinsumAxis, 8> axes;  // by first appearance in "a,b"
};
Result<EinsumSpec> parse_einsum(std::string_view spec);

}  // namespace sinter
