// Rows that are added to rows by number, each sum in ascending order, without atomics.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_scatter;

extern const KernelFamily scatter_family;
constinit const KernelFamily scatter_family =
    closed_family<OpKind::scatter_add>("scatter", emit_scatter);

}  // namespace sinter
