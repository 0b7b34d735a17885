// Attention of many tokens on tensor cores.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "kernels/attention/schedule.h"
#include "kernels/attention_ports.h"

namespace sinter {

EmitKernel emit_tiled_attention;
std::optional<ValueId> choose_tiled_attention(Builder& b, const Op& op, Tokens tokens);

namespace {

constexpr Order kOrders[] = {Order::tiled_attention};

/// (Causal attention of a whole text sees half of the keys; how many a call sees is known to its
/// inputs alone.)
std::optional<KernelCost> attention_cost(const GroupView& group, int64_t) {
  const Graph& graph = group.problem.graph();
  const Op& op = graph[group.anchor()];
  const AttentionHeads heads = attention_heads(graph, op);
  const auto form = attention_form(heads.width, heads.value_width, group.problem.device());
  if (!form) return std::nullopt;
  const double tiles = group.problem.count(volume(DimsRef(op.type.dims).drop_back())) /
                       static_cast<double>(form->rows);
  return product_cost(group, std::max(1.0, tiles) * static_cast<double>(heads.count),
                      form->threads);
}

KernelChoice explain_choice(const Op& own) {
  return {"attention", fmt::format("many tokens of {}", to_string(own.type.dtype))};
}

}  // namespace

extern const KernelFamily attention_family;
constinit const KernelFamily attention_family{
    .name = "attention",
    .kind = KernelFamily::Kind::anchored,
    .orders = kOrders,
    .make = emit_tiled_attention,
    .cost = attention_cost,
    .ports = attention_ports,
    .choose = choose_tiled_attention,
    .explain_choice = explain_choice,
    .addresses = attention_addresses,
};

}  // namespace sinter
