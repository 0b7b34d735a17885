// Single values as code: types, constants, formulas, roundings.
#pragma once

#include <string>

#include "ir/graph.h"

namespace sinter {

/// What an element is in memory (a pointer's target) and in a register.
const char* memory_type(DType dtype);
/// Two bytes an element, computed with as floats.
inline bool is_narrow(DType dtype) { return dtype == DType::f16 || dtype == DType::bf16; }
const char* register_type(DType dtype);

/// Elements to whose multiples the place of a chunk access is aligned: 16 bytes, of i1 8.
int64_t chunk_alignment(DType dtype);

/// A constant of the IR after its one rounding to `dtype`; an expression that needs no parentheses.
std::string literal_code(double value, DType dtype);

/// A float expression rounded to `dtype`.
std::string rounded_code(std::string expression, DType dtype);

/// The op's formula with the operands' expressions in place of a, b and c.
std::string formula_code(OpKind kind, llvm::ArrayRef<std::string> operands);

/// `operand` converted as a cast does.
std::string cast_code(const std::string& operand, DType from, DType to);

}  // namespace sinter
