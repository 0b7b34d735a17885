// Kernels of rows with reductions: a row is walked by some threads of one block.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"
#include "kernels/row/cost.h"

namespace sinter {

EmitKernel emit_rows;

namespace {

bool any_reduces(llvm::ArrayRef<const OpFacts*> facts) {
  return llvm::any_of(facts, [](const OpFacts* one) { return one->reduces; });
}

}  // namespace

extern const KernelFamily row_family;
constinit const KernelFamily row_family{
    .name = "row",
    .kind = KernelFamily::Kind::rows,
    .make = emit_rows,
    .cost = row_cost,
    .claims = any_reduces,
};

}  // namespace sinter
