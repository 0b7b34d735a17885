#include "kernels/attention_ports.h"

#include "ir/attention_operands.h"
#include "ir/op_roles.h"

namespace sinter {

namespace {

uint32_t row_axes(const Graph& graph, const Op& op) {
  return static_cast<uint32_t>(graph[op.operands[0]].type.rank() - 1);
}

Ports::Place by_element(const Graph& graph, const Op& op, size_t operand) {
  return {.port = Port::element,
          .row_axes = row_axes(graph, op),
          .walked = graph[op.operands[operand]].type.dims};
}

}  // namespace

Ports row_number_ports(const Graph& graph, const Op& op) {
  Ports ports;
  ports.operands = {{}, {}, {}, by_element(graph, op, 3), by_element(graph, op, 4)};
  return ports;
}

Ports attention_ports(const Graph& graph, const Op& op) {
  Ports ports = row_number_ports(graph, op);
  ports.operands[0] = by_element(graph, op, 0);
  ports.result = {.port = Port::element, .row_axes = row_axes(graph, op), .walked = {}};
  return ports;
}

bool attention_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  if (operand == 1 || operand == 2) return attention_rows(graph, op, operand).has_value();
  if (is_dropout_seed(op, operand)) return dropout_seed(graph, op).has_value();
  return operand < kMaskOperand || attention_mask(graph, op, operand).has_value();
}

EarlyWish attention_early_reads(const Graph& group, ValueId anchor, llvm::ArrayRef<Symbol>) {
  const Op& op = group[anchor];
  EarlyWish wish;
  for (OperandRole::Kind role : {OperandRole::first, OperandRole::last})
    wish.needed.append(row_number_inputs(group, operand_with(op, role)));
  for (ValueId cache : operands_with(op, OperandRole::cache))
    wish.rows.push_back(*input_of(group, cache));
  return wish;
}

/// A block loads what its token sees and the queries, then its keys, and gives its sums to the
/// block that joins the splits, which stores the result: each step waits for the one before. Nearly
/// all bytes are of caches, whether they are states or inputs.
std::optional<KernelCost> few_tokens_attention_cost(const GroupView& group, int64_t) {
  constexpr int kRoundTrips = 4;
  const DeviceDescription& device = group.problem.device();
  const double blocks = 2 * static_cast<double>(device.multiprocessors);
  const Moved moved{.streamed = group.problem.traffic(group.members).total()};
  return KernelCost{
      .seconds = launch_seconds(device, blocks, moved) + kRoundTrips * device.latency_s,
      .blocks = blocks};
}

}  // namespace sinter
