// The choice of a token from its logits: one block a row.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_sample;

namespace {

constexpr OpKind kAnchors[] = {OpKind::sample};

}  // namespace

extern const KernelFamily sample_family;
constinit const KernelFamily sample_family{
    .name = "sample",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_sample,
    .cost = streaming_cost,
    .latency_bound = true,
};

}  // namespace sinter
