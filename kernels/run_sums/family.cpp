// Kernels of rows that also sum down their columns, runs of virtual lanes apart.
#include "kernels/family.h"

#include "codegen/emission/kernel_body.h"

namespace sinter {

EmitKernel emit_run_sums;
std::optional<KernelCost> run_sums_cost(const GroupView& group, int64_t min_threads);

namespace {

bool any_sums_runs(llvm::ArrayRef<const OpFacts*> facts) {
  return llvm::any_of(facts, [](const OpFacts* one) { return one->sums_runs; });
}

}  // namespace

extern const KernelFamily run_sums_family;
constinit const KernelFamily run_sums_family{
    .name = "run_sums",
    .kind = KernelFamily::Kind::rows,
    .make = emit_run_sums,
    .cost = run_sums_cost,
    .claims = any_sums_runs,
};

}  // namespace sinter
