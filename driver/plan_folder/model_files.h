// The files of a model that travel with its plan: what turns texts into tokens and back, and hidden
// states into vectors.
#pragma once

#include <string>
#include <vector>

#include "ir/error.h"

namespace sinter {

struct ModelFile {
  std::string path;  // relative to the model's folder
  std::string bytes;
};

/// Reads the files that the model at `model` has among these: tokenizer.json, tokenizer.model,
/// tokenizer.bin and what says more about their tokens, chat templates, and the files of an older
/// tokenizer; modules.json, the configs of its modules and config_sentence_transformers.json.
Result<std::vector<ModelFile>> read_model_files(const std::string& model);

}  // namespace sinter
