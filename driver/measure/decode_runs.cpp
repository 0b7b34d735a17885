#include "driver/measure/decode_runs.h"

#include "runtime/random_inputs.h"

namespace sinter {

Result<DecodeRuns> DecodeRuns::create(std::shared_ptr<const CudaExecutable> executable,
                                      llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t count) {
  // Token 0 comes from the prompt; step i makes token i + 1.
  const int64_t most = 1 + kWarmSteps + count;
  DecodeRuns runs;
  runs.count_ = count;
  SINTER_LET(watch, Stopwatch::create(executable->cuda_device()));
  runs.watch_ = std::move(watch);
  SINTER_LET(state, start_generation(*executable, prompts, most, Sampling{}, std::nullopt));
  runs.symbol_values_ = state.symbol_values;
  SINTER_LET(generator, record_generation(std::move(executable), std::move(state), most));
  runs.generator_ = std::move(generator);
  return runs;
}

Result<DecodeRun> DecodeRuns::run() {
  DecodeRun run;
  const auto next = [&]() -> Status {
    SINTER_LET(tokens, generator_->next());
    run.tokens.insert(run.tokens.end(), tokens.begin(), tokens.end());
    return {};
  };
  SINTER_TRY(generator_->restart());
  // A step is enqueued before the tokens of the one before it are waited for, with the others of
  // its graph: after as many tokens the stream holds the untimed steps, and no more.
  static_assert(kWarmSteps % kGraphSteps == 0);
  for (int64_t i = 0; i < kWarmSteps; ++i) SINTER_TRY(next());
  SINTER_TRY(watch_.start(generator_->stream()));
  const auto begin = Clock::now();
  for (int64_t i = 0; i < count_; ++i) SINTER_TRY(next());
  const double host_s = seconds_since(begin);
  SINTER_LET(times, watch_.stop(generator_->stream()));
  run.times = {times.device_s, host_s};
  return run;
}

Result<std::vector<std::vector<int32_t>>> random_sequences(int64_t vocabulary, int64_t count,
                                                           int64_t length, uint64_t seed) {
  SINTER_LET(ids, random_tensor(DType::i32, {count, length}, seed, {1, 0, vocabulary - 1}));
  std::vector<std::vector<int32_t>> sequences;
  for (int64_t s = 0; s < count; ++s)
    sequences.emplace_back(ids.data<int32_t>() + s * length,
                           ids.data<int32_t>() + (s + 1) * length);
  return sequences;
}

}  // namespace sinter
