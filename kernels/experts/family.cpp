// Products of tokens and the matrices of their experts.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "ir/contraction.h"
#include "ir/grouping.h"

namespace sinter {

EmitKernel emit_experts;
std::optional<Verdict> admits_expert_epilogue(const GroupView& group, GroupShape& merged);

namespace {

constexpr OpKind kAnchors[] = {OpKind::expert_linear};

/// The result goes out element by element. An epilogue may need the sums of all experts of a token,
/// so that a row is a token.
Ports expert_ports(const Graph&, const Op&) {
  Ports ports;
  ports.result = {.port = Port::element, .row_axes = 1, .walked = {}};
  return ports;
}

/// Tokens, too, are dense: the kernel has one stride of its rows, their length.
bool reads_where_it_is(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  return is_dense(graph, op.operands[operand]);
}

/// Down, whose operand has a row for each expert, prefetches its matrices' rows while gate and up
/// run. Gate and up do not: the kernel between the choice of the experts and them would have to
/// trigger late. (One H200, Qwen3-30B-A3B: 17.4 us in place of 15.8.)
EarlyWish expert_early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol> symbols) {
  const Op& op = group[anchor];
  EarlyWish wish;
  const bool is_down = group[op.operands[0]].type.rank() == 3;
  if (!is_down || !is_never_empty(group, symbols)) return wish;
  wish.needed.push_back(*input_of(group, op.operands[1]));
  wish.needed.append(row_number_inputs(group, op.operands[2]));
  return wish;
}

KernelChoice explain_choice(const Graph& graph, const Op& own) {
  return {"experts", fmt::format("{} of {} matrices a token", own.type.dims[1].constant(),
                                 graph[own.operands[1]].type.dims[0].constant())};
}

}  // namespace

extern const KernelFamily experts_family;
constinit const KernelFamily experts_family{
    .name = "experts",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_experts,
    .cost = streaming_cost,
    .latency_bound = true,
    .ports = expert_ports,
    .admits_epilogue = admits_expert_epilogue,
    .choosing = {.explain = explain_choice},
    .addresses = reads_where_it_is,
    .early_reads = expert_early_reads,
};

}  // namespace sinter
