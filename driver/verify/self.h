// The check to run on one's own model: both plans read a text and are compared with each other,
// value by value, and with float64. A language model predicts the text and continues its beginning.
#pragma once

#include <variant>

#include "driver/verify/self_encoder.h"

namespace sinter {

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

/// Loads and compiles the model. Errors: a module, a model without weights. A broken promise is no
/// Error but a report that has not `passed`.
using SelfOutcome = std::variant<SelfReport, EncoderReport>;
Result<SelfOutcome> verify_self(const std::string& path, const SelfOptions& options);

/// The check of a language model alone. `text`: tokens of the vocabulary. Of `options` are used:
/// backend, prefill and steps.
Result<SelfReport> check_self(const Plans& plans, const ModelSpec& spec,
                              llvm::ArrayRef<int32_t> text, const SelfOptions& options,
                              const SelfLimits& limits = {});

}  // namespace sinter
