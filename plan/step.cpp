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

StepBytes gemm_bytes(const EntryPlan& entry, const GemmStep& step) {
  auto element_bytes = [&](uint32_t buffer) {
    return SymExpr(whole_bytes(entry.buffers[buffer].type.dtype));
  };
  SymExpr a = step.m * step.k, b = step.k * step.n, c = step.m * step.n;
  for (const GemmStep::Loop& loop : step.loops) {
    if (!loop.a_stride.is(0)) a = a * loop.count;
    if (!loop.b_stride.is(0)) b = b * loop.count;
    if (!loop.c_stride.is(0)) c = c * loop.count;
  }
  StepBytes bytes{a * element_bytes(step.a.buffer) + b * element_bytes(step.b.buffer),
                  c * element_bytes(step.c.buffer)};
  if (step.bias >= 0) bytes.read += step.n * element_bytes(static_cast<uint32_t>(step.bias));
  if (step.residual >= 0) bytes.read += c * element_bytes(static_cast<uint32_t>(step.residual));
  return bytes;
}

}  // namespace

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
      });
}

StepBytes bytes_moved(const Program& program, const EntryPlan& entry, const Step& step) {
  return visit(
      step,
      [&](const KernelStep& run) {
        const Kernel& kernel = program.kernels[run.kernel];
        return StepBytes{read_bytes(kernel), written_bytes(kernel)};
      },
      [&](const GemmStep& gemm) { return gemm_bytes(entry, gemm); },
      [&](const CopyStep& copy) {
        const SymExpr bytes = storage_bytes(entry.buffers[copy.from].type);
        return StepBytes{bytes, bytes};
      });
}

}  // namespace sinter
