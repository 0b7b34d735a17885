// Reductions over axes that kept axes follow: a thread has neighbouring columns, and walks down.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_columns;
std::optional<KernelCost> column_cost(const GroupView& group, int64_t min_threads);

namespace {

bool any_columns(llvm::ArrayRef<const OpFacts*> facts) {
  return llvm::any_of(facts, [](const OpFacts* one) { return one->columns.has_value(); });
}

}  // namespace

extern const KernelFamily column_family;
constinit const KernelFamily column_family{
    .name = "column",
    .kind = KernelFamily::Kind::rows,
    .make = emit_columns,
    .cost = column_cost,
    .claims = any_columns,
};

}  // namespace sinter
