// Products of tokens and the matrices of their experts.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_experts;

namespace {

constexpr OpKind kAnchors[] = {OpKind::expert_linear};

/// Each element goes to its readers as its sum is complete.
Ports expert_ports(const Graph&, const Op&) {
  Ports ports;
  ports.result = {.port = Port::element, .row_axes = 2, .walked = {}};
  return ports;
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
};

}  // namespace sinter
