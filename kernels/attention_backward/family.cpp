// Gradients of attention on tensor cores.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "kernels/attention_backward/order.h"
#include "kernels/attention_backward/schedule.h"
#include "kernels/attention_gradient.h"
#include "kernels/attention_ports.h"

namespace sinter {

EmitKernel emit_attention_gradients;

namespace {

constexpr OpKind kAnchors[] = {OpKind::attention_query_gradient, OpKind::attention_key_gradient,
                               OpKind::attention_value_gradient};

/// Gradients of keys and values are sums of the same probabilities.
bool is_value_gradient(const Op& anchor, const Op& other) {
  return anchor.kind == OpKind::attention_key_gradient &&
         other.kind == OpKind::attention_value_gradient && anchor.operands == other.operands &&
         anchor.attrs == other.attrs;
}

std::optional<KernelCost> gradient_cost(const GroupView& group, int64_t) {
  const Graph& graph = group.problem.graph();
  const Op& op = graph[group.anchor()];
  const AttentionHeads heads = attention_heads(graph, op);
  const auto form =
      gradient_form(heads.width, heads.value_width, op.kind != OpKind::attention_query_gradient,
                    group.problem.device());
  if (!form) return std::nullopt;
  const double rows = group.problem.count(volume(DimsRef(op.type.dims).drop_back()));
  return product_cost(group,
                      {.blocks = std::max(1.0, rows / static_cast<double>(form->own_rows)) *
                                 static_cast<double>(heads.kv_count)},
                      form->threads);
}

bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  return gradient_addresses(graph, op, operand);
}

std::optional<SideResult> gradient_side_result(const Graph&, const Op&, SideKind kind) {
  if (kind == SideKind::block_sums) return SideResult{.size = kSummedGradientRows};
  return kind == SideKind::placed_value ? std::optional(SideResult{}) : std::nullopt;
}

}  // namespace

int64_t max_gradient_width() { return kMaxGradientWidth; }

extern const KernelFamily attention_backward_family;
constinit const KernelFamily attention_backward_family{
    .name = "attention_backward",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_attention_gradients,
    .cost = gradient_cost,
    .is_companion = is_value_gradient,
    .ports = row_number_ports,
    .addresses = addresses,
    .side_result = gradient_side_result,
};

}  // namespace sinter
