// Running sums along an axis, in one order of additions whatever threads and blocks share a row.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_scan;

namespace {

constexpr OpKind kAnchors[] = {OpKind::cumulative_sum};

}  // namespace

extern const KernelFamily scan_family;
constinit const KernelFamily scan_family{
    .name = "scan",
    .kind = KernelFamily::Kind::anchored,
    .anchors = kAnchors,
    .make = emit_scan,
    .cost = streaming_cost,
};

}  // namespace sinter
