#include "kernels/gemm/epilogue.h"

#include "ir/contraction.h"
#include "ir/sym_expr.h"

namespace sinter {
namespace {

/// `id` is `value`, read in its own order.
bool reads_in_order(const Graph& graph, ValueId id, ValueId value) {
  return root_of(graph, id) == value && is_dense(graph, id);
}

std::optional<Activation> activation_of(const Op& op) {
  if (op.kind == OpKind::relu) return Activation::relu;
  if (op.kind == OpKind::gelu_tanh && op.type.dtype != DType::f32) return Activation::gelu_tanh;
  return std::nullopt;
}

/// The operand of `add` that is not `value`, where it lies in memory as the result does.
ValueId residual_of(const Graph& graph, const Op& add, ValueId value) {
  for (size_t i : {0, 1}) {
    const ValueId other = add.operands[1 - i];
    const Op& root = graph[root_of(graph, other)];
    if (reads_in_order(graph, add.operands[i], value) && root_of(graph, other) != value &&
        graph[other].type == add.type && graph[add.operands[i]].type == add.type &&
        is_dense(graph, other) && volume(root.type.dims) == volume(add.type.dims))
      return other;
  }
  return {};
}

}  // namespace

std::optional<ProductEpilogue> product_epilogue(const Graph& graph,
                                                llvm::ArrayRef<ValueId> members) {
  if (members.empty() || !is_without_order(graph[members[0]], OpKind::linear)) return std::nullopt;
  ProductEpilogue epilogue{members[0], {}, Activation::none, members[0]};
  for (ValueId member : members.drop_front()) {
    const Op& op = graph[member];
    if (epilogue.activation != Activation::none) return std::nullopt;
    if (op.kind == OpKind::add && !epilogue.residual.valid()) {
      epilogue.residual = residual_of(graph, op, epilogue.result);
      if (!epilogue.residual.valid()) return std::nullopt;
    } else {
      const std::optional<Activation> activation = activation_of(op);
      if (!activation || !reads_in_order(graph, op.operands[0], epilogue.result))
        return std::nullopt;
      epilogue.activation = *activation;
    }
    epilogue.result = member;
  }
  return epilogue;
}

}  // namespace sinter
