#include "driver/step_class.h"

#include <llvm/ADT/STLExtras.h>

#include "ir/attention_operands.h"
#include "ir/op_roles.h"

namespace sinter {
namespace {

bool is_attention(const Op& op) {
  return op.kind == OpKind::attention || op.kind == OpKind::attention_softmax ||
         op.kind == OpKind::attention_log_sum || op.kind == OpKind::mask_tiles ||
         is_attention_gradient(op);
}

bool is_product(const Op& op) {
  return has_matrix(op) || op_class(op) == OpClass::contraction || op.kind == OpKind::expert_linear;
}

bool reduces(const Op& op) {
  return op_class(op) == OpClass::reduce || op.kind == OpKind::run_sums ||
         op.kind == OpKind::top_k || op.kind == OpKind::layer_norm || op.kind == OpKind::rms_norm ||
         op.kind == OpKind::softmax;
}

/// The ops that find a label's element of a row: a choice of one by number, or a comparison of
/// numbers.
bool finds_label(const Graph& graph, const Op& op) {
  if (op.kind == OpKind::gather)
    return op.type.dims[static_cast<size_t>(op.attrs.get<int64_t>(AttrName::axis))].is(1);
  return op.kind == OpKind::equal && is_integer(graph[op.operands[0]].type.dtype);
}

bool is_activation(const Op& op) {
  switch (op.kind) {
    case OpKind::exp:
    case OpKind::tanh:
    case OpKind::erf:
    case OpKind::sigmoid:
    case OpKind::silu:
    case OpKind::gelu:
    case OpKind::gelu_tanh:
    case OpKind::quick_gelu:
    case OpKind::relu:
      return true;
    default:
      return false;
  }
}

bool is_arithmetic(const Op& op) {
  const OpClass of = op_class(op);
  return of == OpClass::elementwise || of == OpClass::composite || op.kind == OpKind::where;
}

/// Reductions along a row's last axis, as a softmax and a norm have. Sums down columns beside a
/// pointwise function are the gradient of a bias beside the gradient of an activation.
bool reduces_rows(const Graph& graph, const Op& op) {
  if (op_class(op) != OpClass::reduce) return reduces(op);
  const auto& axes = op.attrs.get<std::vector<int64_t>>(AttrName::axes);
  return llvm::is_contained(axes, graph[op.operands[0]].type.rank() - 1);
}

StepClass class_of(const Graph& graph) {
  const auto any = [&](auto&& holds) { return llvm::any_of(graph.ops(), holds); };
  const auto has = [&](OpKind kind) { return any([&](const Op& op) { return op.kind == kind; }); };
  if (any(is_attention)) return StepClass::attention;
  if (any(is_product)) return StepClass::products;
  if (any([&](const Op& op) { return finds_label(graph, op); }) &&
      (any(reduces) || has(OpKind::exp) || has(OpKind::log)))
    return StepClass::loss;
  if (any([&](const Op& op) { return reduces_rows(graph, op); })) return StepClass::norms;
  if (any(is_activation)) return StepClass::activations;
  if (any(reduces)) return StepClass::norms;
  if (has(OpKind::sqrt)) return StepClass::optimizer;
  return any(is_arithmetic) ? StepClass::elementwise : StepClass::copies;
}

}  // namespace

std::string_view to_string(StepClass step_class) {
  constexpr std::string_view kNames[] = {"attention",   "products",  "loss",        "norms",
                                         "activations", "optimizer", "elementwise", "copies"};
  static_assert(std::size(kNames) == kStepClasses);
  return kNames[static_cast<size_t>(step_class)];
}

StepClass step_class(const Program& program, const Step& step) {
  return visit(
      step, [&](const KernelStep& run) { return class_of(program.kernels[run.kernel].group); },
      [](const GemmStep&) { return StepClass::products; },
      [](const CopyStep&) { return StepClass::copies; },
      [](const CollectiveStep&) { return StepClass::copies; });
}

}  // namespace sinter
