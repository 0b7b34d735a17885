// Attention of many tokens on tensor cores.
#include "kernels/family.h"

#include <algorithm>

#include "codegen/emission/kernel_body.h"
#include "ir/contraction.h"
#include "ir/op_flops.h"
#include "kernels/attention/schedule.h"

namespace sinter {

EmitKernel emit_tiled_attention;
std::optional<ValueId> choose_tiled_attention(Builder& b, const Op& op);

namespace {

constexpr OpKind kAnchors[] = {OpKind::tiled_attention};

/// A block computes its own queries, once, and gives its own elements of the result.
Ports attention_ports(const Graph& graph, const Op& op) {
  Ports ports;
  ports.operands = {
      {.port = Port::element, .row_axes = 1, .walked = graph[op.operands[0]].type.dims}};
  ports.result = {.port = Port::element, .row_axes = 1, .walked = {}};
  return ports;
}

/// The bytes or the operations, whatever takes longer. (Causal attention of a whole text sees half
/// of the keys; how many a call sees is known to its inputs alone.)
std::optional<KernelCost> attention_cost(const GroupView& group, int64_t) {
  const FusionProblem& problem = group.problem;
  const Graph& graph = problem.graph();
  const Op& op = graph[group.anchor()];
  const HeadWidths widths = head_widths(graph, op);
  const auto form = attention_form(widths.width, widths.value_width, problem.device());
  if (!form) return std::nullopt;
  const double blocks =
      std::max(1.0, problem.count(SymExpr(op.type.dims[0])) / static_cast<double>(form->rows)) *
      static_cast<double>(op.attrs.get<int64_t>(AttrName::heads));
  const double operations = flops(graph, op, {problem.symbols(), problem.sizes()}) /
                            flops_per_s(problem.device(), op.type.dtype);
  return KernelCost{.seconds = std::max(launch_seconds(problem.device(), 2 * blocks,
                                                       problem.traffic(group.members).total()),
                                        problem.device().launch_s + operations),
                    .blocks = blocks,
                    .threads = form->threads};
}

/// q is computed through its views, the caches are read by rows of neighbouring elements.
bool attention_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  if (operand == 0) return true;
  if (operand <= 2) return strided_rows(graph, op.operands[operand]).has_value();
  return is_dense(graph, op.operands[operand]);
}

KernelChoice explain_choice(const Op& own) {
  return {"attention", fmt::format("many tokens of {}", to_string(own.type.dtype))};
}

}  // namespace

extern const KernelFamily attention_family;
constinit const KernelFamily attention_family{
    .name = "attention",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_tiled_attention,
    .cost = attention_cost,
    .ports = attention_ports,
    .choose = choose_tiled_attention,
    .explain_choice = explain_choice,
    .addresses = attention_addresses,
};

}  // namespace sinter
