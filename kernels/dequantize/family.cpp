// Matrices of codes and scales as floats: for products that take no packed matrix, and rows of
// tables.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "ir/contraction.h"

namespace sinter {

EmitKernel emit_dequantize;
std::optional<ValueId> choose_dequantize(Builder& b, const Op& op, Tokens tokens,
                                         const Recipe& recipe);

namespace {

constexpr OpKind kAnchors[] = {OpKind::dequantize};

/// Each element goes to its readers as it is computed.
Ports dequantize_ports(const Graph&, const Op& op) {
  Ports ports;
  ports.result = {
      .port = Port::element, .row_axes = static_cast<uint32_t>(op.type.rank() - 1), .walked = {}};
  return ports;
}

/// The packed rows are consecutive.
bool addresses(const Graph& graph, const Op& op, size_t operand, llvm::ArrayRef<Symbol>) {
  return is_dense(graph, op.operands[operand]);
}

}  // namespace

extern const KernelFamily dequantize_family;
constinit const KernelFamily dequantize_family{
    .name = "dequantize",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_dequantize,
    .cost = streaming_cost,
    .ports = dequantize_ports,
    .choosing = {.choose = choose_dequantize},
    .addresses = addresses,
};

}  // namespace sinter
