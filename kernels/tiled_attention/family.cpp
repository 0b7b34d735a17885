// Attention of many tokens on tensor cores.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "kernels/attention_ports.h"
#include "kernels/tiled_attention/schedule.h"

namespace sinter {

EmitKernel emit_tiled_attention;
std::optional<ValueId> choose_tiled_attention(Builder& b, const Op& op, Tokens tokens,
                                              const Recipe& recipe);

namespace {

constexpr OpKind kAnchors[] = {OpKind::attention_log_sum};
constexpr Order kOrders[] = {Order::tiled_attention};

/// The log-sum of the same scores.
bool is_log_sum(const Op& anchor, const Op& other) {
  constexpr AttrName kShared[] = {AttrName::heads,  AttrName::kv_heads, AttrName::scale,
                                  AttrName::window, AttrName::softcap,  AttrName::sink};
  const size_t own = other.operands.size();
  return order_of(anchor) == Order::tiled_attention && other.kind == OpKind::attention_log_sum &&
         anchor.operands.size() >= own &&
         llvm::ArrayRef(anchor.operands).take_front(own) == llvm::ArrayRef(other.operands) &&
         has_mask(other) == has_mask(anchor) && llvm::all_of(kShared, [&](AttrName name) {
           const AttrValue *a = anchor.attrs.find(name), *b = other.attrs.find(name);
           return (a == nullptr) == (b == nullptr) && (a == nullptr || *a == *b);
         });
}

/// A log-sum alone is computed as with its attention, whose result is left out.
Ports ports(const Graph& graph, const Op& op) {
  Ports ports = attention_ports(graph, op);
  if (op.kind == OpKind::attention_log_sum) ports.result = {};
  return ports;
}

// Instructions of a weight of the softmax, counted in machine code.
constexpr double kWeightInstructions = 20;

/// A block's first item may see all keys; its products and its softmax take turns. (Causal
/// attention of a whole text sees half of the keys, at about half of the rate; how many a call sees
/// is known to its inputs alone.)
std::optional<KernelCost> attention_cost(const GroupView& group, int64_t min_threads) {
  const Graph& graph = group.problem.graph();
  const Op& op = graph[group.anchor()];
  if (op.attrs.has(AttrName::splits)) return few_tokens_attention_cost(group, min_threads);
  const AttentionHeads heads = attention_heads(graph, op);
  const auto form = attention_form(attention_shape(graph, op), group.problem.device());
  if (!form) return std::nullopt;
  const FusionProblem& problem = group.problem;
  const DeviceDescription& device = problem.device();
  const auto of_item = static_cast<double>(form->rows);
  const double rows = problem.count(volume(DimsRef(graph[op.operands[0]].type.dims).drop_back())),
               tiles = std::max(1.0, rows / of_item);
  const Dims& keys = graph[op.operands[1]].type.dims;
  const double weights = std::min(rows, of_item) * problem.extent(keys[keys.size() - 2]);
  const double products = 2 * weights * static_cast<double>(heads.width + heads.value_width) /
                          device.tensor_peak_flops_per_s,
               softmax = 2 * kWeightInstructions * weights / device.float_flops_per_s;
  return product_cost(
      group,
      {.blocks = tiles * static_cast<double>(heads.count),
       .slowest = (products + softmax) * static_cast<double>(device.multiprocessors),
       .round_trips = 4},
      form->threads);
}

EarlyWish early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols) {
  return group[anchor].attrs.has(AttrName::splits) ? attention_early_reads(group, anchor, symbols)
                                                   : EarlyWish();
}

KernelChoice explain_choice(const Graph&, const Op& own) {
  return {"attention",
          fmt::format("{} tokens of {}", own.attrs.has(AttrName::splits) ? "few" : "many",
                      to_string(own.type.dtype))};
}

}  // namespace

extern const KernelFamily tiled_attention_family;
constinit const KernelFamily tiled_attention_family{
    .name = "tiled_attention",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .orders = kOrders,
    .make = emit_tiled_attention,
    .cost = attention_cost,
    .is_companion = is_log_sum,
    .ports = ports,
    .choosing = {.choose = choose_tiled_attention, .explain = explain_choice},
    .addresses = attention_addresses,
    .early_reads = early_reads,
};

}  // namespace sinter
