// The choice of a token from its logits: one block a row.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_sample;

extern const KernelFamily sample_family;
constinit const KernelFamily sample_family =
    closed_family<OpKind::sample>("sample", emit_sample, /*latency_bound=*/true);

}  // namespace sinter
