// Kernels of elements that do not depend on one another: a thread has a chunk of them.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "kernels/row/cost.h"

namespace sinter {

EmitKernel emit_elements;

namespace {

bool any(llvm::ArrayRef<const OpFacts*>) { return true; }  // the last family that is asked

}  // namespace

extern const KernelFamily pointwise_family;
constinit const KernelFamily pointwise_family{
    .name = "pointwise",
    .kind = KernelFamily::Kind::rows,
    .make = emit_elements,
    .cost = row_cost,
    .claims = any,
};

}  // namespace sinter
