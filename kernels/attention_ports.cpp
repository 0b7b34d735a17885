#include "kernels/attention_ports.h"

#include "ir/attention_operands.h"

namespace sinter {

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

bool attention_addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  if (operand == 1 || operand == 2) return attention_rows(graph, op, operand).has_value();
  return operand < kMaskOperand || attention_mask(graph, op, operand).has_value();
}

}  // namespace sinter
