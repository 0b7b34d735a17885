// Texts to vectors by an encoder.
#pragma once

#include "driver/activation_memory.h"
#include "driver/embed/pooling.h"
#include "driver/ready_model.h"

namespace sinter {

struct EmbedOptions {
  std::shared_ptr<Backend> backend;
  CompileOptions compile;
  Pooling pooling;
  int64_t activation_bytes = kActivationBytes;  // of a call's arena, at most
};

struct Embeddings {
  std::vector<std::vector<double>> vectors;  // of each text
  int64_t calls = 0;
  int64_t arena_bytes = 0;  // of the largest call
};

/// A vector of the model's hidden size for every text, given as token ids. A text cannot be cut,
/// since its tokens see those after them; whole texts share calls as far as the memory for
/// activations and the model's positions go. An error if the model is no encoder, a text is empty
/// or too long, its call needs more memory, or a token is outside the vocabulary.
Result<Embeddings> embed(const OpenedModel& model, llvm::ArrayRef<std::vector<int32_t>> texts,
                         const EmbedOptions& options);

}  // namespace sinter
