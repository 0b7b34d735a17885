// The parts of `bench`: both plans on the device, and what is measured with them.
#pragma once

#include "driver/bench/bench.h"
#include "driver/compile/predicted.h"
#include "driver/measure/decode_runs.h"

namespace sinter {

/// Both plans of one frozen module with the same weights and decisions.
struct BenchPlans {
  OpenedModel model;  // before the passes
  Module frozen;
  Compiled compiled;  // the fused plan
  Compiled apart;     // the unfused one
  CompileOptions options, apart_options;
  std::optional<DeviceDescription> board;  // with the rates that were measured of it, if any
  std::optional<ModelSpec> spec;           // of a language model
  std::optional<StepExperts> experts;      // of its decode step
  std::shared_ptr<const CudaExecutable> fused, unfused;
  double first_calls_s = 0;  // of all measurements: deciding the products, warming up
  double forms_s = 0;        // tuning the forms of kernels

  /// Seconds of a call of an entry of one of the two; see predicted_seconds().
  std::optional<double> predicted(const Compiled& compiled, std::string_view entry,
                                  llvm::ArrayRef<int64_t> sizes) const {
    return predicted_seconds(compiled, entry, sizes, board ? &*board : nullptr);
  }
  const CudaDevicePtr& device() const { return fused->cuda_device(); }
  Numerics numerics() const { return compiled.program->numerics; }
};

/// Adds a sample of `calls` calls that took `times` together.
void add_sample(PlanTimes& plan, const Stopwatch::Times& times, int64_t calls);

/// An error where the two plans' results differ; `what` names them. With fast numerics they may, by
/// less than a quarter of what they are (RMS): that is no proof, only that both computed the same.
Status require_same(const BenchPlans& plans, const HostTensor& fused, const HostTensor& unfused,
                    std::string_view what);

/// Greedy generation of `options.batch` sequences after prompts of random tokens: seconds of a
/// token through recorded graphs, against the read ceiling.
Result<BenchCase> bench_decode(BenchPlans& plans, const BenchOptions& options, int64_t context,
                               const Ceiling& read);
/// One prefill of `length` random tokens a sequence that leaves the logits of the last ones,
/// against the GEMM ceiling.
Result<BenchCase> bench_prefill(BenchPlans& plans, const BenchOptions& options, int64_t length,
                                const Ceiling& gemm);
/// Every entry of a module on random inputs that rotate through memory, against the copy of as many
/// bytes.
Result<std::vector<BenchCase>> bench_entries(BenchPlans& plans, const BenchOptions& options,
                                             const CudaCeilings& ceilings);

}  // namespace sinter
