// Texts to vectors by an encoder.
#pragma once

#include <functional>

#include "driver/activation_memory.h"
#include "driver/embed/pooling.h"
#include "driver/ready_plan.h"

namespace sinter {

struct EmbedOptions {
  Pooling pooling;
  int64_t activation_bytes = kActivationBytes;  // of a call's arena, at most
  /// Texts share a call up to this number of tokens; none: up to the model's positions, or
  /// kHostSharedTokens on the CPU.
  std::optional<int64_t> shared_tokens;
  int64_t prompt_tokens = 0;  // first tokens of each text, which Pooling::pools_prompt is about
};

/// On the CPU attention of a call computes the scores of all its tokens, across texts too. MiniLM
/// on 40 texts of 32 tokens takes 0.89 s of a processor with 128 and 1.33 s with 512.
inline constexpr int64_t kHostSharedTokens = 128;

/// Takes the vector of the next text, in the order of the texts; an error ends the work.
using TakeVector = std::function<Status(llvm::ArrayRef<double> vector)>;

struct EmbedCalls {
  int64_t calls = 0;
  int64_t arena_bytes = 0;  // of the largest call
};

/// An error where the model is no encoder.
Status require_encoder(const Model& model);

/// Tokens of the longest text that the encoder takes: of its positions, and of what the pooling's
/// files allow.
int64_t most_tokens(const ModelSpec& spec, const Pooling& pooling);

/// Gives `take` a vector of the model's hidden size for every text, given as token ids. A text
/// cannot be fed in parts, since its tokens see those after them; whole texts share calls as far as
/// the memory for activations and the model's positions go. `model` is an encoder, and `ready` it
/// on a device. An error if a text is empty or too long, its call needs more memory, or a token is
/// outside the vocabulary.
Result<EmbedCalls> embed(const Model& model, const ReadyPlan& ready,
                         llvm::ArrayRef<std::vector<int32_t>> texts, const EmbedOptions& options,
                         const TakeVector& take);

}  // namespace sinter
