// Single values as code: types, constants, formulas, roundings.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace sinter {

/// The type of an element in memory (a pointer's target) and in a register.
inline std::string_view memory_type(DType dtype) { return dtype_info(dtype).memory; }
inline std::string_view register_type(DType dtype) { return dtype_info(dtype).registers; }
/// A float type that memory holds with fewer bits than a register.
inline bool is_narrow(DType dtype) { return is_float(dtype) && dtype_info(dtype).bits < 32; }

/// Elements to whose multiples the place of a chunk access is aligned: 16 bytes, of i1 8.
int64_t chunk_alignment(DType dtype);

/// A constant of the IR after its one rounding to `dtype`; an expression that needs no parentheses.
std::string literal_code(const Number& value, DType dtype);

/// A float expression rounded to `dtype`.
std::string rounded_code(std::string expression, DType dtype);

/// The op's formula with the operands' expressions in place of a, b and c.
std::string formula_code(OpKind kind, llvm::ArrayRef<std::string> operands);

/// The type of kernels/common/reduce.cuh that combines the elements of a reduction.
const char* reduction_type(const Op& op);

/// A value of `from` is one of `to` as a register holds it: a cast computes nothing.
bool is_free_cast(DType from, DType to);
/// `operand` converted as a cast does.
std::string cast_code(const std::string& operand, DType from, DType to);

}  // namespace sinter
