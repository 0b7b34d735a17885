// Text, a token at a time, from a decoder-only model.
#pragma once

#include "driver/generate/prefill_chunk.h"
#include "frontends/model/model_spec.h"

namespace sinter {

/// How a token is chosen; see op sample. temperature 0: the likeliest.
struct Sampling {
  float temperature = 0;
  int32_t top_k = 0;  // 0: all
  float top_p = 1;    // 1: all
  int32_t seed = 0;
};

/// An error where the program lacks an entry or a symbol of language models.
Status require_generation(const Program& program);

/// The seed of sequence `index` of several with one seed: equal prompts go on differently. The
/// first has the seed itself.
int32_t sequence_seed(int32_t seed, size_t index);

/// Continues sequences of unequal length by one token each per step. On a GPU a few steps are one
/// recorded graph: tokens, positions and lengths stay in device memory, only chosen tokens leave
/// it. An executable on a GPU serves one generator at a time: a step is always under way, and
/// products share their workspace.
class Generator {
 public:
  /// `streaming`: the cache that the model was built with; one prompt then, of any length.
  /// Otherwise prompts and tokens must fit the model's positions. Runs the prompts (none empty), in
  /// calls of as many tokens as `prefill` says. At most `most` tokens will be asked for, at least
  /// 1; they decide how large the caches are.
  static Result<std::unique_ptr<Generator>> create(
      std::shared_ptr<const Executable> executable, llvm::ArrayRef<std::vector<int32_t>> prompts,
      int64_t most, const Sampling& sampling, const std::optional<StreamingCache>& streaming = {},
      const PrefillOptions& prefill = {});
  virtual ~Generator() = default;

  /// The next token of every sequence, `most` times at most.
  virtual Result<std::vector<int32_t>> next() = 0;

  /// How the prompts were fed.
  const PrefillChunk& prefill() const { return prefill_; }

 private:
  PrefillChunk prefill_;
};

}  // namespace sinter
