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
//     SINTER_DEVICE void set_words(long long at, uint4 words) const { ... }
//   };
//   ... {
//     const PortMemory memory{x0, x1, y0, n0};
//
// set_words takes a chunk as it is stored in memory; only a result of 16-bit elements that is an
// output itself has it. `at` counts elements; a chunk begins there. An accessor stands for memory,
// or for what other ops of the group compute: the same text of a kernel serves fused and unfused
// plans.
#pragma once

#include <string>
#include <vector>

#include "codegen/emission/emit_context.h"

namespace sinter {

/// The text of a group's ports.
struct PortText {
  std::string includes;  // of the kernel library
  std::string memory;    // PortMemory: the kernel's parameters, as the emitter of values names them
  std::string memory_value;  // the statement "const PortMemory memory{x0, y0, n0};"
  /// PortOperandK for each operand K that the context's anchor reads by element, and PortResult,
  /// which stores the outputs that take the result.
  std::string accessors;
  /// Outputs that do not take the result: definitions, and statements by which each block stores a
  /// share of their elements.
  std::string store_globals, stores;
};

/// By value of the group: whether it depends on the anchor's result.
std::vector<bool> takes_result(const EmitContext& context);

/// For a group with an anchor, in blocks of `threads` threads. loads_ahead: PortResult's chunks
/// take their 16-bit inputs from words that were loaded ahead (kernels/common/ahead_loads.cuh), and
/// the elements given are rounded to the result's type:
///
///     SINTER_DEVICE void set_chunk(long long at, const float (&given)[8], Loads loads) const;
///     SINTER_DEVICE void issue_loads(long long at, AheadWords& words) const;
///     SINTER_DEVICE void prefetch(long long at) const;
///
/// An output may then be the sums of blocks of rows of a value (ir/side_results.h): set_chunk adds
/// the value's chunk to what the loads have as summed(), and sums_of_blocks() is the output's
/// memory.
Result<PortText> emit_ports(const EmitContext& context, int64_t threads, bool loads_ahead = false);
/// Without PortResult, for an anchor whose result goes to memory: outputs that take it are its own.
Result<PortText> emit_operand_ports(const EmitContext& context, int64_t threads);

}  // namespace sinter
