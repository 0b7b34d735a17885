// Products of tokens and the matrices of their experts.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_experts;
std::optional<Verdict> admits_expert_epilogue(const GroupView& group, GroupShape& merged);

namespace {

constexpr OpKind kAnchors[] = {OpKind::expert_linear};

/// Elements go to their readers as their sums are complete.
Ports expert_ports(const Graph&, const Op&) {
  Ports ports;
  ports.result = {.port = Port::element, .row_axes = 2, .walked = {}};
  return ports;
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
    .explain_choice = explain_choice,
};

}  // namespace sinter
