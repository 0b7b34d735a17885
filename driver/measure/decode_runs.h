// Generation on a device, run again and again with a stopwatch.
#pragma once

#include "driver/generate/cuda_generator.h"
#include "driver/measure/stopwatch.h"

namespace sinter {

/// Tokens of context where the user states none, as far as the model's positions allow.
inline constexpr int64_t kUsualContext = 1024;

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
  static Result<DecodeRuns> create(std::shared_ptr<const CudaExecutable> executable,
                                   llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t count);
  Result<DecodeRun> run();
  /// The symbol values of the entries decode and sample.
  llvm::ArrayRef<int64_t> symbol_values() const { return symbol_values_; }

 private:
  DecodeRuns() = default;
  int64_t count_ = 0;
  std::vector<int64_t> symbol_values_;
  std::unique_ptr<RecordedGenerator> generator_;
  Stopwatch watch_;
};
inline constexpr int64_t kMinContext = kWarmSteps + 1;
constexpr int64_t decode_prompt(int64_t context) { return context - kWarmSteps; }

/// `count` sequences of `length` tokens, all inside the vocabulary.
Result<std::vector<std::vector<int32_t>>> random_sequences(int64_t vocabulary, int64_t count,
                                                           int64_t length, uint64_t seed);

}  // namespace sinter
