// The parts of `bench`: both plans on the device, a stopwatch, and what is measured with them.
#pragma once

#include "driver/bench/bench.h"
#include "driver/generate/cuda_generator.h"
#include "runtime/clock.h"
#include "runtime/cuda/executor.h"

namespace sinter {

/// Both plans of one frozen module with the same weights and decisions.
struct BenchPlans {
  LoadedModel model;  // before the passes
  Module frozen;
  Compiled compiled;  // the fused plan
  Compiled apart;     // the unfused one
  CompileOptions options, apart_options;
  std::optional<ModelSpec> spec;  // of a language model
  std::shared_ptr<const CudaModel> fused, unfused;
  double first_calls_s = 0;  // of all measurements: deciding the products, warming up
  double rings_s = 0;        // tuning the rings

  const CudaDevicePtr& device() const { return fused->cuda_device(); }
  Numerics numerics() const { return compiled.program->numerics; }
};

/// Times work in a stream by events, and by the host's clock from start() until it is done.
class Stopwatch {
 public:
  struct Times {
    double device_s = 0, host_s = 0;
  };
  static Result<Stopwatch> create(CudaDevicePtr device);
  Status start(const CudaStream& stream);
  /// Waits for what was enqueued since start().
  Result<Times> stop(const CudaStream& stream);

 private:
  CudaEvent begin_, end_;
  Clock::time_point begin_time_;
};

/// Adds a sample of `calls` calls that took `times` together.
void add_sample(PlanTimes& plan, const Stopwatch::Times& times, int64_t calls);

/// An error where the two plans' results differ; `what` names them. With fast numerics they may, by
/// less than a quarter of what they are (RMS): that is no proof, only that both computed the same.
Status require_same(const BenchPlans& plans, const HostTensor& fused, const HostTensor& unfused,
                    std::string_view what);

/// A sample of generation.
struct DecodeRun {
  Stopwatch::Times times;       // of all timed steps
  std::vector<int32_t> tokens;  // of every step, all sequences
};

/// Greedy generation after prompts through recorded graphs. A sample takes kWarmSteps untimed steps
/// and `count` timed ones. The prompts run once; every sample goes back to the first token and sees
/// the same context: a prompt of `decode_prompt` tokens and the untimed steps' make it.
class DecodeRuns {
 public:
  static Result<DecodeRuns> create(std::shared_ptr<const CudaModel> model,
                                   llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t count);
  Result<DecodeRun> run();
  /// Of decode and sample.
  llvm::ArrayRef<int64_t> symbol_values() const { return symbol_values_; }

 private:
  DecodeRuns() = default;
  int64_t count_ = 0;
  std::vector<int64_t> symbol_values_;
  std::unique_ptr<RecordedGenerator> generator_;
  Stopwatch watch_;
};
inline constexpr int64_t kLeastContext = kWarmSteps + 1;
constexpr int64_t decode_prompt(int64_t context) { return context - kWarmSteps; }

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

/// `count` sequences of `length` tokens, all inside the vocabulary.
Result<std::vector<std::vector<int32_t>>> random_sequences(int64_t vocabulary, int64_t count,
                                                           int64_t length, uint64_t seed);

}  // namespace sinter
