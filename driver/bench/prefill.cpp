#include "driver/bench/calls.h"
#include "driver/bench/costs.h"
#include "driver/bench/parts.h"
#include "driver/compile/plan_summary.h"
#include "driver/compile/predicted.h"
#include "driver/generate/decoder.h"
#include "driver/measure/resident_calls.h"

namespace sinter {
namespace {

constexpr int64_t kWarmCalls = 3;

/// One plan's entry `prefill`, everything on the device.
class TimedPrefill {
 public:
  static Result<TimedPrefill> create(const CudaModel& model, const DecoderCall& call) {
    SINTER_LET(session, model.new_session(call.symbol_values));
    SINTER_LET(calls, ResidentCalls::create(std::move(session),
                                            {resident_call(model.program(), "prefill",
                                                           call.symbol_values, call.inputs)}));
    SINTER_LET(watch, Stopwatch::create(model.cuda_device()));
    return TimedPrefill(std::move(calls), std::move(watch));
  }

  Result<Stopwatch::Times> run() {
    SINTER_TRY(watch_.start(calls_.stream()));
    SINTER_TRY(calls_.enqueue());
    return watch_.stop(calls_.stream());
  }

  Result<HostTensor> logits() const { return read_output(calls_.calls()[0], 0, calls_.stream()); }

 private:
  TimedPrefill(ResidentCalls calls, Stopwatch watch)
      : calls_(std::move(calls)), watch_(std::move(watch)) {}

  ResidentCalls calls_;
  Stopwatch watch_;
};

}  // namespace

Result<BenchCase> bench_prefill(BenchPlans& plans, const BenchOptions& options, int64_t length,
                                const Ceiling& gemm) {
  const std::string name = fmt::format("prefill {}", length);
  SINTER_LET(sequences,
             random_sequences(plans.spec->vocabulary, options.batch, length, options.seed));
  const llvm::ArrayRef<Symbol> symbols = plans.fused->program().symbols;
  const int64_t multiple = symbols[static_cast<size_t>(find_symbol(symbols, "R"))].multiple;
  const int64_t capacity = (length + multiple - 1) / multiple * multiple;
  const DecoderCall call =
      pack_sequences("prefill", symbols, sequences, std::vector<int64_t>(sequences.size(), 0),
                     capacity, Wanted::last_of_each);
  SINTER_TRY(check_symbol_values(symbols, call.symbol_values));
  BenchCase result;
  result.name = "prefill";
  result.sizes = {{"tokens", length}, {"batch", options.batch}};
  result.work = BenchCase::Work::operations;
  result.amount = prefill_operations(plans.frozen, *plans.spec, options.batch, length);
  result.ceiling_name = "GEMM";
  result.ceiling = gemm;
  const auto launches = [&](const CudaModel& model) {
    return plan_costs(model.program(), *model.program().find_entry("prefill"), call.symbol_values)
        .launches;
  };
  result.fused.launches = launches(*plans.fused);
  result.unfused.launches = launches(*plans.unfused);
  result.fused.predicted_s = predicted_seconds(plans.compiled, "prefill", call.symbol_values);
  result.unfused.predicted_s = predicted_seconds(plans.apart, "prefill", call.symbol_values);

  const auto begin = Clock::now();
  SINTER_LET(fused, TimedPrefill::create(*plans.fused, call));
  SINTER_LET(unfused, TimedPrefill::create(*plans.unfused, call));
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
