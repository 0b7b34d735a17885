#include "kernels/attention_ports.h"

#include "ir/attention_operands.h"

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
  return operand < kMaskOperand || attention_mask(graph, op, operand).has_value();
}

Permission attention_permission(const Recipe& recipe) {
  return recipe.attention == Recipe::Attention::composed ? Permission::never : Permission::always;
}

}  // namespace sinter
