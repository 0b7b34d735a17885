// The largest elements of short rows, by position: one warp a row.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_top_k;

extern const KernelFamily top_k_family;
constinit const KernelFamily top_k_family =
    closed_family<OpKind::top_k>("top_k", emit_top_k, /*latency_bound=*/true);

}  // namespace sinter
