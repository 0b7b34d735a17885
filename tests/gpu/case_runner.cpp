#include "gpu/case_runner.h"

#include "differential/ended_outside.h"
#include "kernels/library.h"
#include "runtime/compare.h"

namespace sinter {
namespace {

Status in(std::string_view what, Status status) {
  if (!status) {
    std::string& where = status.error().where;
    where = where.empty() ? std::string(what) : fmt::format("{}: {}", what, where);
  }
  return status;
}

Status compare(const std::string& what, const HostTensor& unfused, const HostTensor& fused) {
  SINTER_LET(difference, compare_bits(unfused, fused));
  if (!difference) return {};
  return fail(to_string(*difference), what + ", unfused and fused", "", ExitCode::check_failed);
}

}  // namespace

/// A plan with its states.
struct CaseRunner::Plan {
  const char* name;
  std::unique_ptr<Session> session;
  RunResult result;

  Status call(const PlannedCase& test, const CaseData& data, bool check_host) {
    const CallOptions options{.poison_freed = true, .keep = {}, .check_kernels = check_host};
    auto run = session->run("main", test.symbol_values, addresses_of(data.inputs), options);
    if (!run) return tl::make_unexpected(std::move(run.error()));
    result = std::move(*run);
    return {};
  }
};

Result<CaseRunner> CaseRunner::create(CudaDevicePtr device, const KernelStore& kernels) {
  CaseRunner runner;
  SINTER_LET(gemm, CudaGemm::create(device, kernel_library(), {}, GemmPolicy::first));
  runner.device_ = std::move(device);
  runner.gemm_ = std::move(gemm);
  runner.kernels_ = &kernels;
  return runner;
}

/// `weights` are loaded where those given do not serve.
Result<CaseRunner::Plan> CaseRunner::load(const std::shared_ptr<const Program>& program,
                                          const PlannedCase& test,
                                          std::shared_ptr<const CudaWeights>& weights) const {
  std::vector<std::shared_ptr<const CudaLibrary>> libraries;
  std::vector<CudaApi::Kernel> kernels;
  for (const Kernel& kernel : program->kernels) {
    SINTER_LET(loaded, kernels_->find(kernel.name));
    libraries.push_back(std::move(loaded.library));
    kernels.push_back(loaded.kernel);
  }
  if (!weights || !weights->serves(*program)) {
    const CaseFiles files(test.calls[0]);
    SINTER_LET(uploaded, CudaWeights::load(device_, *program, &files));
    weights = std::move(uploaded);
  }
  SINTER_LET(model, CudaExecutable::assemble(program, device_, gemm_, weights, std::move(libraries),
                                             std::move(kernels)));
  SINTER_LET(session, model->new_session(test.symbol_values));
  return Plan{program == test.fused ? "fused plan" : "unfused plan", std::move(session), {}};
}

Status CaseRunner::run(const PlannedCase& test, bool check_host) const {
  std::shared_ptr<const CudaWeights> weights;
  SINTER_LET(unfused, load(test.unfused, test, weights));
  SINTER_LET(fused, load(test.fused, test, weights));
  for (int call = 0; call < kCallsOfCase; ++call) {
    const std::string name = fmt::format("call {}", call);
    Status unfused_ran = unfused.call(test, test.calls[call], check_host);
    Status fused_ran = fused.call(test, test.calls[call], check_host);
    const bool outside = ended_outside(unfused_ran) && ended_outside(fused_ran) &&
                         unfused_ran.error().message() == fused_ran.error().message();
    if (!outside) {
      SINTER_TRY(in(name, in(unfused.name, std::move(unfused_ran))));
      SINTER_TRY(in(name, in(fused.name, std::move(fused_ran))));
    }
    const llvm::ArrayRef<std::string> outputs = test.fused->entries[0].output_names;
    for (size_t i = 0; !outside && i < outputs.size(); ++i)
      SINTER_TRY(compare(fmt::format("{}, output {} (%{})", name, i, outputs[i]),
                         unfused.result.outputs[i], fused.result.outputs[i]));
    for (size_t i = 0; i < test.fused->states.size(); ++i) {
      SINTER_LET(a, unfused.session->state(i));
      SINTER_LET(b, fused.session->state(i));
      SINTER_TRY(compare(fmt::format("{}, state %{}", name, test.fused->states[i].name), a, b));
    }
    if (outside) return {};
  }
  return {};
}

}  // namespace sinter
