#include "ir/device_order.h"

#include "ir/custom_op.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

/// The words of the conditions.
class OpFact {
 public:
  OpFact(const Graph& graph, const Op& op, llvm::ArrayRef<int64_t> symbol_values)
      : graph_(graph), op_(op), symbol_values_(symbol_values) {}

  /// Bits of an element of an operand.
  int64_t bits(size_t operand) const {
    return dtype_info(graph_[op_.operands[operand]].type.dtype).bits;
  }
  /// The first extent of the result; where it is not known, the largest.
  int64_t rows() const {
    return SymExpr(op_.type.dims[0]).evaluate(symbol_values_).value_or(INT64_MAX);
  }
  /// The caller's record says so.
  bool is_exact() const { return custom_op_of(op_).exact; }

 private:
  const Graph& graph_;
  const Op& op_;
  llvm::ArrayRef<int64_t> symbol_values_;
};

}  // namespace

bool has_device_order(const Graph& graph, const Op& op, llvm::ArrayRef<int64_t> symbol_values) {
  [[maybe_unused]] const OpFact s(graph, op, symbol_values);
  if (const std::optional<Order> order = order_of(op)) {
    switch (*order) {
#define SINTER_ORDER(name, op, most, required, optional, roles, own_bits) \
  case Order::name:                                                       \
    return own_bits;
#include "ir/orders.def"
    }
  }
  switch (op.kind) {
#define SINTER_DEVICE_ORDER(name, condition) \
  case OpKind::name:                         \
    return condition;
#include "ir/ops.def"
    default:
      return false;
  }
}

}  // namespace sinter
