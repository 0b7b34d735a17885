// Attention of few tokens over many keys, at the speed at which memory gives them.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/attention_operands.h"
#include "ir/op_roles.h"
#include "kernels/attention_ports.h"

namespace sinter {

EmitKernel emit_decode_attention;
std::optional<ValueId> choose_decode_attention(Builder& b, const Op& op, Tokens tokens);

namespace {

constexpr Order kOrders[] = {Order::decode_attention};

/// The rows that a token sees, and of the caches all rows that this call does not append.
EarlyWish early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol>) {
  const Op& op = group[anchor];
  EarlyWish wish;
  for (OperandRole::Kind role : {OperandRole::first, OperandRole::last})
    wish.needed.append(row_number_inputs(group, operand_with(op, role)));
  for (ValueId cache : operands_with(op, OperandRole::cache))
    wish.rows.push_back(*input_of(group, cache));
  return wish;
}

/// Queries too are read by heads of neighbouring elements.
bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol> symbols) {
  return operand == 0 ? attention_queries(graph, op).has_value()
                      : attention_addresses(graph, op, operand, symbols);
}

/// A block loads what its token sees and the queries, then its keys, and gives its sums to the
/// block that joins the splits, which stores the result: each step waits for the one before. Nearly
/// all bytes are of caches, whether they are states or inputs.
std::optional<KernelCost> decode_attention_cost(const GroupView& group, int64_t) {
  constexpr int kRoundTrips = 4;
  const DeviceDescription& device = group.problem.device();
  const double blocks = 2 * static_cast<double>(device.multiprocessors);
  const Moved moved{.streamed = group.problem.traffic(group.members).total()};
  return KernelCost{
      .seconds = launch_seconds(device, blocks, moved) + kRoundTrips * device.latency_s,
      .blocks = blocks};
}

KernelChoice explain_choice(const Op&) {
  return {"attention", "at most 8 tokens, or one of each sequence"};
}

}  // namespace

extern const KernelFamily decode_attention_family;
constinit const KernelFamily decode_attention_family{
    .name = "decode_attention",
    .kind = KernelFamily::Kind::anchored,
    .orders = kOrders,
    .make = emit_decode_attention,
    .cost = decode_attention_cost,
    .latency_bound = true,
    .ports = row_number_ports,
    .choose = choose_decode_attention,
    .explain_choice = explain_choice,
    .addresses = addresses,
    .early_reads = early_reads,
};

}  // namespace sinter
