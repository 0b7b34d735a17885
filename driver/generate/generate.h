// Text generation with its times.
#pragma once

#include <functional>

#include "driver/generate/generator.h"
#include "driver/ready_plan.h"

namespace sinter {

/// The options for choosing tokens, as they were given.
struct SamplingOptions {
  std::optional<double> temperature, top_p;
  std::optional<int32_t> top_k, seed;

  /// An option that means nothing for the likeliest token; null: none is given.
  const char* of_draws() const {
    return top_p ? "top-p" : top_k ? "top-k" : seed ? "seed" : nullptr;
  }
};
/// Without a temperature: 1 where an option of draws is given, else 0. An error that names the
/// option for numbers that are no temperature, top-k or top-p.
Result<Sampling> to_sampling(const SamplingOptions& options);

struct GenerateOptions {
  std::shared_ptr<Backend> backend;
  CompileOptions compile;
  int64_t count = 64;  // tokens to add to each sequence, at most
  bool stop_at_eos =
      true;  // a sequence ends at one of the model's end tokens, which is not returned
  std::vector<int32_t> ends;  // tokens that end a sequence, beside the model's own
  Sampling sampling;
  PrefillOptions prefill;
  /// Called with every token as it arrives; false ends the generation.
  std::function<bool(size_t sequence, int32_t token)> on_token;
};

struct Generation {
  std::vector<std::vector<int32_t>> tokens;  // per prompt
  int64_t prompt_tokens = 0;
  PrefillChunk prefill;    // how these were fed
  int64_t steps = 0;       // tokens of the longest sequence
  double first_s = 0;      // until the first token, compiling and loading apart
  double per_token_s = 0;  // mean of the others; 0 below three steps, which show no rate
};

/// Whether a token ends a sequence: one of `more`, or, where `stop_at_eos`, one of the model's.
bool is_end_token(const Model& model, bool stop_at_eos, llvm::ArrayRef<int32_t> more,
                  int32_t token);

/// An error for tokens outside the vocabulary, and for texts that are longer than the model allows.
Status check_prompts(const Model& model, llvm::ArrayRef<std::vector<int32_t>> prompts,
                     int64_t count);

/// Generates with a model that is loaded; options.compile and options.backend are not read. The
/// prompts have passed check_prompts.
Result<Generation> generate(const Model& model, const ReadyPlan& ready,
                            llvm::ArrayRef<std::vector<int32_t>> prompts,
                            const GenerateOptions& options);
/// Compiles, loads and generates. `model` was loaded with the streaming cache, if one is wanted.
Result<Generation> generate(const OpenedModel& model, llvm::ArrayRef<std::vector<int32_t>> prompts,
                            const GenerateOptions& options);

}  // namespace sinter
