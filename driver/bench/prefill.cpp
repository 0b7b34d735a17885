#include "driver/bench/calls.h"
#include "driver/bench/costs.h"
#include "driver/bench/parts.h"
#include "driver/generate/feed_prompts.h"
#include "driver/measure/resident_calls.h"

namespace sinter {
namespace {

constexpr int64_t kWarmCalls = 3;

/// The calls that feed the prompts: as many for both plans.
Result<std::vector<DecoderCall>> calls_of(const BenchPlans& plans,
                                          llvm::ArrayRef<std::vector<int32_t>> prompts,
                                          int64_t capacity) {
  const PromptSizes sizes = prompt_sizes(prompts, capacity, Wanted::last_of_each);
  PrefillOptions options;
  for (const auto& plan : {plans.unfused, plans.fused}) {
    SINTER_LET(chunk, choose_chunk(plan->program(), sizes, options));
    options.chunk = chunk.tokens;
  }
  std::vector<DecoderCall> calls;
  for (const PromptCall& part : cut_prompts(prompts, *options.chunk))
    calls.push_back(pack_sequences("prefill", plans.fused->program().symbols, part.tokens,
                                   part.lengths, capacity, Wanted::last_of_each));
  return calls;
}

/// One plan's calls of `prefill`, everything on the device, recorded in a graph, as a session
/// records a call that it repeats.
class TimedPrefill {
 public:
  static Result<TimedPrefill> create(const CudaExecutable& executable,
                                     llvm::ArrayRef<DecoderCall> calls) {
    SINTER_LET(session, executable.new_session(calls[0].symbol_values));
    std::vector<ResidentCall> resident;
    for (const DecoderCall& call : calls)
      resident.push_back(
          resident_call(executable.program(), "prefill", call.symbol_values, call.inputs));
    SINTER_LET(placed, ResidentCalls::create(std::move(session), resident));
    SINTER_LET(graph, placed.record());
    SINTER_LET(watch, Stopwatch::create(executable.cuda_device()));
    return TimedPrefill(std::move(placed), std::move(graph), std::move(watch));
  }

  Result<Stopwatch::Times> run() {
    SINTER_TRY(watch_.start(calls_.stream()));
    SINTER_TRY(graph_.launch(calls_.stream()));
    return watch_.stop(calls_.stream());
  }

  /// The logits of the last call.
  Result<HostTensor> logits() const {
    return read_output(calls_.calls().back(), 0, calls_.stream());
  }

 private:
  TimedPrefill(ResidentCalls calls, CudaGraph graph, Stopwatch watch)
      : calls_(std::move(calls)), graph_(std::move(graph)), watch_(std::move(watch)) {}

  ResidentCalls calls_;
  CudaGraph graph_;
  Stopwatch watch_;
};

}  // namespace

Result<BenchCase> bench_prefill(BenchPlans& plans, const BenchOptions& options, int64_t length,
                                const Ceiling& gemm) {
  const std::string name = fmt::format("prefill {}", length);
  SINTER_LET(sequences,
             random_sequences(plans.spec->vocabulary, options.batch, length, options.seed));
  const llvm::ArrayRef<Symbol> symbols = plans.fused->program().symbols;
  const int64_t capacity = sequence_rows(symbols, options.batch, length);
  SINTER_LET(calls, calls_of(plans, sequences, capacity));
  BenchCase result;
  result.name = "prefill";
  result.sizes = {{"tokens", length}, {"batch", options.batch}};
  if (calls.size() > 1) result.sizes.emplace_back("calls", static_cast<int64_t>(calls.size()));
  result.work = BenchCase::Work::operations;
  result.amount = prefill_operations(plans.frozen, *plans.spec, options.batch, length);
  result.ceiling_name = "GEMM";
  result.ceiling = gemm;
  const auto predict = [&](const Compiled& plan, PlanTimes& times) {
    times.launches = calls.size() * plan.program->find_entry("prefill")->steps.size();
    times.predicted_s = 0;
    for (const DecoderCall& call : calls) {
      const auto seconds = plans.predicted(plan, "prefill", call.symbol_values);
      times.predicted_s = seconds && times.predicted_s
                              ? std::optional(*times.predicted_s + *seconds)
                              : std::nullopt;
    }
  };
  predict(plans.compiled, result.fused);
  predict(plans.apart, result.unfused);

  const auto begin = Clock::now();
  SINTER_LET(fused, TimedPrefill::create(*plans.fused, calls));
  SINTER_LET(unfused, TimedPrefill::create(*plans.unfused, calls));
  for (int64_t i = 0; i < kWarmCalls; ++i) {
    SINTER_TRY(fused.run());
    SINTER_TRY(unfused.run());
  }
  SINTER_LET(fused_logits, fused.logits());
  SINTER_LET(unfused_logits, unfused.logits());
  SINTER_TRY(require_same(plans, fused_logits, unfused_logits, name));
  plans.first_calls_s += seconds_since(begin);
  for (int64_t i = 0; i < options.repeat; ++i) {
    SINTER_LET(a, fused.run());
    add_sample(result.fused, a, 1);
    SINTER_LET(b, unfused.run());
    add_sample(result.unfused, b, 1);
  }
  return result;
}

}  // namespace sinter
