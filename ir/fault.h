// Planted faults: bugs that a test build switches on one at a time, to show that the differential
// tests find them. In any other build `fault` is the constant false and costs nothing.
#pragma once

#include <cstdint>
#include <optional>

#include "ir/op_roles.h"

namespace sinter {

/// name, what a planted place does instead.
#define SINTER_FAULTS(X)                                                          \
  X(dropped_rounding, "keeps float32 where a stage rounds to its dtype")          \
  X(wrong_index_map, "reads one element beside the one its map names")            \
  X(missing_state_edge, "forgets that readers of a state come before writers")    \
  X(overlapping_buffers, "gives two live values the same space")                  \
  X(other_reduction_tree, "combines a row in another order")                      \
  X(skipped_convexity, "merges although a path leaves the group and returns")     \
  X(early_free, "ends a value's life one reader too soon")                        \
  X(swapped_operands, "exchanges the operands of an op that does not commute")    \
  X(wrong_constant, "emits a constant that is off by one unit in the last place") \
  X(missing_output_write, "computes a result and never stores it")                \
  X(stale_state_version, "reads a state's old version for its new one")           \
  X(wrong_stride_gemm, "gives a GEMM operand a stride that is one too large")     \
  X(wrong_axis_broadcast, "repeats along another axis of the same extent")        \
  X(unordered_siblings, "runs steps in an order that ignores a dependence")       \
  X(sign_across_append, "reads a state behind its append to leave out a sign")    \
  X(whole_unit_axis, "takes all of an extent of 1 where a slice has no element")  \
  X(other_16_bit_result, "gives an own product of f16 a result of bf16")          \
  X(label_outside_row, "takes a row's first element for a label below the row")   \
  X(padding_in_row, "reduces a padded row with what stands behind the row")

enum class Fault : uint8_t {
#define X(name, what) name,
  SINTER_FAULTS(X)
#undef X
};

/// A wrong role in the table of ops.
struct PlantedRole {
  OpKind kind;
  std::optional<Order> order;
  size_t operand;
  OperandRole role;
};

#ifdef SINTER_PLANT_FAULTS

inline std::optional<PlantedRole> planted_role;

/// The fault that is switched on, and how often a planted place asked for it while it was.
struct PlantedFault {
  std::optional<Fault> active;
  uint64_t hits = 0;
};
inline PlantedFault planted_fault;

/// True while `which` is switched on.
inline bool fault(Fault which) {
  if (planted_fault.active != which) return false;
  ++planted_fault.hits;
  return true;
}

#else

constexpr std::optional<PlantedRole> planted_role;
constexpr bool fault(Fault) { return false; }

#endif

}  // namespace sinter
