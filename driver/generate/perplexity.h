// How well a model predicts a text.
#pragma once

#include "driver/generate/prefill_chunk.h"
#include "driver/ready_plan.h"
#include "runtime/evaluate/host_tensor.h"

namespace sinter {

struct PerplexityOptions {
  std::shared_ptr<Backend> backend;
  CompileOptions compile;
  /// Tokens that a prediction sees at most, the predicted one excepted; 0: as many as the model has
  /// positions. Without `recompute` the text is cut into pieces of this many tokens, each predicted
  /// from its own beginning; with a streaming cache the cache's size counts instead.
  int64_t window = 0;
  /// Every prediction from the last `window` tokens, computed anew: slow, the measure for caches.
  bool recompute = false;
  /// The prefill of each piece: the logits of a whole call are in memory at once.
  PrefillOptions prefill;
};

struct Perplexity {
  int64_t predicted = 0;  // tokens
  double nll_sum = 0;     // natural logarithms
  PrefillChunk prefill;   // of the longest piece
  double mean() const { return nll_sum / static_cast<double>(predicted); }
  double value() const;  // exp(mean)
};

/// The loss of each prediction: -log p of tokens[i] by row i of `logits`, which may have more rows.
/// Computed in float64, natural logarithms.
std::vector<double> prediction_losses(const HostTensor& logits, llvm::ArrayRef<int32_t> tokens);

/// `tokens`: at least two.
Result<Perplexity> perplexity(const OpenedModel& model, llvm::ArrayRef<int32_t> tokens,
                              const PerplexityOptions& options);

}  // namespace sinter
