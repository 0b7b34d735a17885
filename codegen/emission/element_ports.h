// Ports by element: the text of the prologue and the epilogue of an anchor whose kernel reads
// elements of its operands, and sets elements of its result, through accessors:
//
//   struct PortMemory { const f16* x0; const f16* x1; f16* y0; long long n0; };
//   struct PortOperand0 : PortMemory {
//     SINTER_DEVICE float operator()(long long at) const { ... return v1; }
//     SINTER_DEVICE void chunk(float (&out)[8], long long at) const { ... }
//   };
//   struct PortResult : PortMemory {
//     SINTER_DEVICE void set(long long at, float given) const { ... store(y0 + i, v3); }
//     SINTER_DEVICE void set_chunk(long long at, const float (&given)[8]) const { ... }
//   };
//   ... {
//     const PortMemory memory{x0, x1, y0, n0};
//
// `at` counts elements, those of a chunk from there on. Behind an accessor is memory, or what other
// ops of the group compute: the same text of a kernel serves fused and unfused plans.
#pragma once

#include <string>
#include <vector>

#include "codegen/emission/emit_context.h"

namespace sinter {

/// By value of the group: whether it depends on the anchor's result.
std::vector<bool> takes_result(const Graph& group, ValueId anchor);

/// The definition of PortMemory: the kernel's parameters, by the names that the emitter of values
/// uses.
std::string port_memory(const EmitContext& context);
/// "const PortMemory memory{x0, y0, n0};"
std::string port_memory_value(const EmitContext& context);

/// The definition of PortOperandK, the anchor's open operand K.
Result<std::string> operand_accessor(const EmitContext& context, ValueId anchor, size_t operand);
/// The definition of PortResult, which stores the outputs that take the anchor's result. It needs
/// kernels/common/element_ports.cuh.
Result<std::string> result_accessor(const EmitContext& context, ValueId anchor);

/// An output that does not take the result: definitions, and statements that store element `at`.
struct StoredElement {
  std::string globals, statements;
};
Result<StoredElement> stored_element(const EmitContext& context, size_t output);
/// The same for all such outputs: each block of `threads` threads stores a share of the elements.
Result<StoredElement> stored_outputs(const EmitContext& context, ValueId anchor, int64_t threads);

}  // namespace sinter
