// Attention of many tokens of float32.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "kernels/attention_f32/schedule.h"

namespace sinter {

EmitKernel emit_float_attention;
std::optional<ValueId> choose_float_attention(Builder& b, const Op& op);

namespace {

constexpr OpKind kAnchors[] = {OpKind::float_attention};

/// A block computes its own queries, once, which of the keys its tokens see, and gives its own
/// elements of the result.
Ports attention_ports(const Graph& graph, const Op& op) {
  const auto row_axes = static_cast<uint32_t>(op.type.rank() - 1);
  const auto element = [&](size_t operand) {
    return Ports::Place{.port = Port::element,
                        .row_axes = row_axes,
                        .walked = graph[op.operands[operand]].type.dims};
  };
  Ports ports;
  ports.operands = {element(0), {}, {}, element(3), element(4)};
  ports.result = {.port = Port::element, .row_axes = row_axes, .walked = {}};
  return ports;
}

std::optional<KernelCost> attention_cost(const GroupView& group, int64_t) {
  const Graph& graph = group.problem.graph();
  const Op& op = graph[group.anchor()];
  const AttentionHeads heads = attention_heads(graph, op);
  const FloatAttentionForm form = float_attention_form(heads, group.problem.device());
  const double tiles = group.problem.count(volume(DimsRef(op.type.dims).drop_back())) /
                       static_cast<double>(form.rows);
  return product_cost(group, std::max(1.0, tiles) * static_cast<double>(heads.count), form.threads);
}

/// q and the row numbers are computed through their views, the caches are read by heads of
/// neighbouring elements.
bool attention_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  if (operand == 1 || operand == 2) return attention_rows(graph, op, operand).has_value();
  return operand != 5 || attention_mask(graph, op).has_value();
}

KernelChoice explain_choice(const Op&) { return {"attention", "many tokens of f32"}; }

}  // namespace

extern const KernelFamily attention_f32_family;
constinit const KernelFamily attention_f32_family{
    .name = "attention_f32",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_float_attention,
    .cost = attention_cost,
    .ports = attention_ports,
    .choose = choose_float_attention,
    .explain_choice = explain_choice,
    .addresses = attention_addresses,
};

}  // namespace sinter
