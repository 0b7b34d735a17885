// Texts to vectors by an encoder.
#pragma once

#include "driver/embed/pooling.h"
#include "driver/ready_model.h"

namespace sinter {

struct EmbedOptions {
  std::shared_ptr<Backend> backend;
  CompileOptions compile;
  Pooling pooling;
};

/// A vector of the model's hidden size for every text, given as token ids; texts share calls as far
/// as the model's positions go. An error if the model is no encoder, a text is empty or too long,
/// or a token is outside the vocabulary.
Result<std::vector<std::vector<double>>> embed(const OpenedModel& model,
                                               llvm::ArrayRef<std::vector<int32_t>> texts,
                                               const EmbedOptions& options);

}  // namespace sinter
