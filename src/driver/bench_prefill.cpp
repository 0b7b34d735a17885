#include "driver/bench_calls.h"
#include "driver/bench_costs.h"
#include "driver/decoder.h"
#include "driver/plan_summary.h"

namespace sinter {
namespace {

constexpr int64_t kWarmCalls = 3;

/// One plan's entry `prefill` with its inputs, caches and arena on the device.
class ResidentPrefill {
 public:
  static Result<ResidentPrefill> create(const std::shared_ptr<const CudaModel>& model,
                                        const DecoderCall& call) {
    ResidentPrefill prefill;
    SINTER_LET(session, CudaSession::create(model, call.symbol_values));
    prefill.session_ = std::move(session);
    const CudaDevicePtr& device = model->cuda_device();
    SINTER_LET(inputs, InputSets::create(device, call.inputs, 1));
    SINTER_LET(arena_bytes, prefill.session_->arena_bytes("prefill", call.symbol_values));
    SINTER_LET(arena, CudaMemory::allocate(device, arena_bytes, "the arena"));
    SINTER_LET(placed, prefill.session_->place("prefill", call.symbol_values, inputs.addresses(0),
                                               arena.address()));
    SINTER_TRY(prefill.session_->prepare(placed));
    SINTER_LET(watch, Stopwatch::create(device));
    prefill.inputs_ = std::move(inputs);
    prefill.arena_ = std::move(arena);
    prefill.call_ = std::move(placed);
    prefill.watch_ = std::move(watch);
    return prefill;
  }

  Result<Stopwatch::Times> run() {
    SINTER_TRY(watch_.start(stream()));
    SINTER_TRY(session_->enqueue(call_, stream()));
    return watch_.stop(stream());
  }

  Result<HostTensor> logits() const { return read_output(call_, 0, stream()); }

 private:
  const CudaStream& stream() const { return session_->stream(); }

  std::unique_ptr<CudaSession> session_;
  InputSets inputs_;
  CudaMemory arena_;
  CudaCall call_;
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

  const auto begin = Clock::now();
  SINTER_LET(fused, ResidentPrefill::create(plans.fused, call));
  SINTER_LET(unfused, ResidentPrefill::create(plans.unfused, call));
  for (int64_t i = 0; i < kWarmCalls; ++i) {
    SINTER_TRY(fused.run());
    SINTER_TRY(unfused.run());
  }
  SINTER_LET(fused_logits, fused.logits());
  SINTER_LET(unfused_logits, unfused.logits());
  SINTER_TRY(require_equal(fused_logits, unfused_logits, name));
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
