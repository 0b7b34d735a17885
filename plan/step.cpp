#include "plan/step.h"

#include "plan/program.h"

namespace sinter {
namespace {

StepFacts gemm_facts(const GemmStep& gemm) {
  StepFacts facts{.kind = "gemm"};
  facts.reads = {gemm.a.buffer, gemm.b.buffer};
  for (int64_t buffer : {gemm.bias, gemm.residual})
    if (buffer >= 0) facts.reads.push_back(static_cast<uint32_t>(buffer));
  facts.writes = {gemm.c.buffer};
  return facts;
}

}  // namespace

std::string_view to_string(CollectiveStep::Kind) { return "all_reduce"; }

std::string_view StepFacts::name() const { return kernel ? std::string_view(kernel->name) : kind; }

StepFacts step_facts(const Program& program, const Step& step) {
  return visit(
      step,
      [&](const KernelStep& run) {
        StepFacts facts{.kind = "kernel", .kernel = &program.kernels[run.kernel]};
        facts.reads.assign(run.inputs.begin(), run.inputs.end());
        facts.writes.assign(run.outputs.begin(), run.outputs.end());
        return facts;
      },
      [](const GemmStep& gemm) { return gemm_facts(gemm); },
      [](const CopyStep& copy) {
        return StepFacts{.kind = "copy", .reads = {copy.from}, .writes = {copy.to}};
      },
      [](const CollectiveStep& run) {
        return StepFacts{.kind = to_string(run.kind), .reads = {run.from}, .writes = {run.to}};
      });
}

}  // namespace sinter
