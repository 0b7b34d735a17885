// The check to run on one's own model: both plans predict a text and continue its beginning, and
// are compared with each other, value by value, and with float64.
#pragma once

#include "driver/generate/prefill_chunk.h"
#include "driver/verify/parts.h"

namespace sinter {

struct SelfOptions {
  std::shared_ptr<Backend> backend;
  OpenOptions open;
  uint64_t seed = 1;   // of the tokens where the model has no tokenizer
  int64_t steps = 32;  // tokens to generate, as far as the model's positions allow
  /// Compile options of the fused plan; the unfused plan has the same passes, device and numerics.
  /// With fast numerics equal bits and tokens are not required, and a model that is too large for
  /// float64 is an error.
  CompileOptions compile;
  PrefillOptions prefill;  // calls of the text have at most 128 tokens
};

/// The results of one plan.
struct SelfRun {
  std::vector<double> losses;      // of every token of the text but the first; natural logarithms
  double text_s = 0;               // for the text, its logits copied to the host
  std::vector<int32_t> generated;  // greedily, after the text's beginning
  double generated_s = 0;          // for all of them but the first
  int64_t arena_bytes = 0;         // of the largest call of the text
  double mean_loss() const;
};

/// The first predictions once more, in float64 without roundings.
struct PreciseLoss {
  int64_t predictions = 0;
  double precise = 0, fused = 0;  // mean losses over these predictions
  double allowed = 0;             // of their difference (loss_bound.h)
  double seconds = 0;
  bool holds() const;
};

struct SelfReport {
  DType dtype = DType::f32;
  std::string device;
  bool strict = true;
  bool random_text = false;  // the model has no tokenizer
  int64_t text_tokens = 0;   // of the whole text
  int64_t tokens = 0;        // of its beginning, which is used
  std::string shortened;     // why not all; empty: all are used
  int64_t prompt_tokens = 0;
  PrefillChunk prefill;    // by which both plans were fed the text
  DTypeReport comparison;  // calls, values, elements, difference
  SelfRun fused, unfused;
  std::optional<PreciseLoss> precise;
  std::string not_precise;  // why there is no comparison with float64
  int64_t weight_bytes = 0, state_bytes = 0;
  int64_t peak_bytes = 0;  // of the host's memory
  double plans_s = 0;      // for compiling and loading both plans

  bool same_tokens() const { return fused.generated == unfused.generated; }
  bool passed() const;
};

/// How much work is worth waiting for, as multiplications with weights, of which a core of a CPU
/// does some 1e10 a second.
struct SelfLimits {
  double text_products = 2e11;     // of the text by one plan on the CPU; a GPU has no limit
  double precise_products = 2e11;  // in float64
  /// Bytes that the host has for float64; none: as many as are available then.
  std::optional<int64_t> memory;
};

/// Loads and compiles the language model. Errors: a module or an encoder, a model without weights.
/// A broken promise is no Error but a report that has not `passed`.
Result<SelfReport> verify_self(const std::string& path, const SelfOptions& options);

/// The check alone. `text`: tokens of the vocabulary. Of `options` are used: backend and steps.
Result<SelfReport> check_self(const Plans& plans, const ModelSpec& spec,
                              llvm::ArrayRef<int32_t> text, const SelfOptions& options,
                              const SelfLimits& limits = {});

}  // namespace sinter
