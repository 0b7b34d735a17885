// Running sums along an axis, in one order of additions whatever threads and blocks share a row.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_scan;

extern const KernelFamily scan_family;
constinit const KernelFamily scan_family = closed_family<OpKind::cumulative_sum>("scan", emit_scan);

}  // namespace sinter
