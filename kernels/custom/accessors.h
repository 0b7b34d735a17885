// The text of prologue and epilogue of a caller's op: members of structs that its function is
// given.
#pragma once

#include <string>

#include "codegen/emission/emit_context.h"

namespace sinter {

/// The definition of CustomOperandK, an open operand:
///
///   struct CustomOperand0 : CustomMemory {
///     SINTER_DEVICE float operator()(long long at) const { ... return v1; }
///     SINTER_DEVICE void chunk(float (&out)[8], long long at) const { ... }
///   };
Result<std::string> operand_accessor(const EmitContext& context, size_t operand);

/// The definition of CustomResult, which stores the outputs that take the result:
///
///   struct CustomResult : CustomMemory {
///     SINTER_DEVICE void set(long long at, float given) const { ... store(y0 + i, v3); }
///     SINTER_DEVICE void set_chunk(long long at, const float (&given)[8]) const { ... }
///   };
Result<std::string> result_accessor(const EmitContext& context);

/// Of an output that does not take the result: definitions, and statements that store element `at`.
struct StoredElement {
  std::string globals, statements;
};
Result<StoredElement> stored_element(const EmitContext& context, size_t output);

}  // namespace sinter
