// The roles of ops' operands: the column `roles` of ops.def, which says what each role means.
#pragma once

#include "ir/graph.h"

namespace sinter {

struct OperandRole {
  enum Kind : uint8_t {
    value,
    row,
    matrix,
    stream,
    bias,
    table,
    state,
    update,
    base,
    cache,
    id,
    slot,
    first,
    last,
    target,
    group,
  };
  static constexpr int kNoRows = -1;
  static constexpr int kResult = -2;

  constexpr OperandRole(Kind kind = value, int rows_of = kNoRows) : kind(kind), rows_of(rows_of) {}

  Kind kind;
  int rows_of;  // the operand whose rows the values name, or kResult

  bool is_address() const { return rows_of != kNoRows; }
  friend bool operator==(const OperandRole&, const OperandRole&) = default;
};

/// The role of an operand of an op of that kind, with that order or none.
OperandRole operand_role(OpKind kind, std::optional<Order> order, size_t operand);
inline OperandRole operand_role(const Op& op, size_t operand) {
  return operand_role(op.kind, order_of(op), operand);
}
/// Some operand has that role.
bool has_role(const Op& op, OperandRole::Kind role);

/// The operands of that role, in order.
llvm::SmallVector<ValueId, 2> operands_with(const Op& op, OperandRole::Kind role);
/// The first operand of that role; an invalid id where the op has none.
ValueId operand_with(const Op& op, OperandRole::Kind role);

/// Multiplies a matrix, streamed or not.
inline bool has_matrix(const Op& op) {
  return has_role(op, OperandRole::matrix) || has_role(op, OperandRole::stream);
}
/// A formula that is computed element by element, such as gelu: it decomposes into elementwise ops.
inline bool is_activation(const Op& op) {
  return op_class(op) == OpClass::composite && op.operands.size() == 1 &&
         !has_role(op, OperandRole::row);
}
/// Reads rows of a cache.
inline bool reads_cache(const Op& op) { return has_role(op, OperandRole::cache); }
/// The op's effect: its result is the next version of a state, written in place.
inline bool writes_state(const Op& op) { return has_role(op, OperandRole::state); }
/// The op writes the rows of a state that a `slot` names, and leaves the others as they are.
inline bool writes_rows(const Op& op) { return has_role(op, OperandRole::slot); }
/// The op replaces all of a state.
inline bool replaces_state(const Op& op) { return writes_state(op) && !writes_rows(op); }
/// The op stores a part of a value in the memory of `base`, or begins the value.
inline bool places_part(const Op& op) { return op.kind == OpKind::place; }
/// A version of a state: the state as the call finds it, or what an op has made of it.
inline bool is_state_version(const Op& op) { return op.kind == OpKind::state || writes_state(op); }
/// The type that an op writes: the update's type for an append, otherwise the result's.
const TensorType& written_type(const Graph& graph, const Op& op);

}  // namespace sinter
