// Rows that are added to rows by number, each sum in ascending order, without atomics.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_scatter;

namespace {

constexpr OpKind kAnchors[] = {OpKind::scatter_add};

/// Each element of a sum goes to its readers as it is complete.
Ports scatter_ports(const Graph&, const Op&) {
  Ports ports;
  ports.result = {.port = Port::element, .row_axes = 1, .walked = {}};
  return ports;
}

}  // namespace

extern const KernelFamily scatter_family;
constinit const KernelFamily scatter_family{
    .name = "scatter",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_scatter,
    .cost = streaming_cost,
    .ports = scatter_ports,
};

}  // namespace sinter
