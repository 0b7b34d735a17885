// Attention of many tokens of float32.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "kernels/attention_ports.h"
#include "kernels/float_attention/schedule.h"

namespace sinter {

EmitKernel emit_float_attention;
std::optional<ValueId> choose_float_attention(Builder& b, const Op& op, Tokens tokens,
                                              const Recipe& recipe);

namespace {

constexpr Order kOrders[] = {Order::float_attention};

std::optional<KernelCost> attention_cost(const GroupView& group, int64_t) {
  const Graph& graph = group.problem.graph();
  const Op& op = graph[group.anchor()];
  const AttentionHeads heads = attention_heads(graph, op);
  const FloatAttentionForm form = float_attention_form(heads, group.problem.device());
  const double tiles = group.problem.count(volume(DimsRef(op.type.dims).drop_back())) /
                       static_cast<double>(form.rows);
  return product_cost(group, {.blocks = std::max(1.0, tiles) * static_cast<double>(heads.count)},
                      form.threads);
}

KernelChoice explain_choice(const Graph&, const Op&) { return {"attention", "many tokens of f32"}; }

}  // namespace

extern const KernelFamily float_attention_family;
constinit const KernelFamily float_attention_family{
    .name = "float_attention",
    .kind = KernelFamily::Kind::anchored,
    .orders = kOrders,
    .make = emit_float_attention,
    .cost = attention_cost,
    .ports = attention_ports,
    .choosing = {.choose = choose_float_attention, .explain = explain_choice},
    .addresses = attention_addresses,
};

}  // namespace sinter
