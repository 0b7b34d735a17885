#include "ir/op_roles.h"

#include "ir/fault.h"
#include "ir/never_destroyed.h"

namespace sinter {
namespace {

using OperandRoles = llvm::SmallVector<OperandRole, 5>;

/// The column `roles`, in a scope that has its words.
struct RoleColumn {
  using Role = OperandRole;
  [[maybe_unused]] static constexpr Role value = Role::value, row = Role::row,
                                         matrix = Role::matrix, stream = Role::stream,
                                         bias = Role::bias, table = Role::table,
                                         state = Role::state, update = Role::update,
                                         base = Role::base, cache = Role::cache;
  static Role id(int rows_of) { return {Role::id, rows_of}; }
  static Role slot(int rows_of) { return {Role::slot, rows_of}; }
  static Role first(int rows_of = Role::kNoRows) { return {Role::first, rows_of}; }
  static Role last(int rows_of = Role::kNoRows) { return {Role::last, rows_of}; }
  static Role target() { return {Role::target, Role::kResult}; }
  static Role group(int rows_of) { return {Role::group, rows_of}; }

  /// The operands after the list's are values.
  static llvm::ArrayRef<OperandRole> of(OpKind kind, std::optional<Order> order) {
    const llvm::ArrayRef<OperandRole> own = order ? of(*order) : llvm::ArrayRef<OperandRole>();
    return own.empty() ? of(kind) : own;
  }

 private:
  static llvm::ArrayRef<OperandRole> of(OpKind kind) {
    static const auto& column = never_destroyed([] {
      return llvm::SmallVector<OperandRoles, 0>{
#define SINTER_OP(name, op_class, least, most, required, optional, roles, ...) OperandRoles roles,
#define SINTER_ELEMENTWISE(...) OperandRoles{},
#include "ir/ops.def"
      };
    });
    return column[static_cast<size_t>(kind)];
  }

  /// Empty: the op's roles.
  static llvm::ArrayRef<OperandRole> of(Order order) {
    static const auto& column = never_destroyed([] {
      return llvm::SmallVector<OperandRoles, 0>{
#define SINTER_ORDER(name, op, most, required, optional, roles, ...) OperandRoles roles,
#include "ir/orders.def"
      };
    });
    return column[static_cast<size_t>(order)];
  }
};

}  // namespace

OperandRole operand_role(OpKind kind, std::optional<Order> order, size_t operand) {
  if (planted_role && planted_role->kind == kind && planted_role->order == order &&
      planted_role->operand == operand)
    return planted_role->role;
  const llvm::ArrayRef<OperandRole> roles = RoleColumn::of(kind, order);
  return operand < roles.size() ? roles[operand] : OperandRole();
}

bool has_role(const Op& op, OperandRole::Kind role) {
  const int most = max_operands(op.kind, order_of(op));
  for (int i = 0; i < most; ++i)
    if (operand_role(op, static_cast<size_t>(i)).kind == role) return true;
  return false;
}

llvm::SmallVector<ValueId, 2> operands_with(const Op& op, OperandRole::Kind role) {
  llvm::SmallVector<ValueId, 2> found;
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (operand_role(op, i).kind == role) found.push_back(op.operands[i]);
  return found;
}

ValueId operand_with(const Op& op, OperandRole::Kind role) {
  for (size_t i = 0; i < op.operands.size(); ++i)
    if (operand_role(op, i).kind == role) return op.operands[i];
  return {};
}

const TensorType& written_type(const Graph& graph, const Op& op) {
  return op_class(op) == OpClass::append ? graph[operand_with(op, OperandRole::update)].type
                                         : op.type;
}

}  // namespace sinter
