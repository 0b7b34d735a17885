// How a text becomes one vector: what sentence-transformers writes beside a model. The prompt that
// stands before a text, its longest length, and how hidden states are pooled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "driver/embed/prompts.h"

namespace sinter {

enum class PoolingKind : uint8_t {
  mean,  // of all tokens
  cls,   // the first token
};
std::string_view to_string(PoolingKind kind);

struct Pooling {
  PoolingKind kind = PoolingKind::mean;
  bool normalize = false;                  // to length 1
  std::optional<int64_t> max_tokens = {};  // of a text, special tokens included
  bool pools_prompt = true;                // a prompt's tokens are pooled too
  Prompts prompts = {};
};

/// By modules.json in the model's folder, and the files that it names, or by a GGUF file; the
/// default where there is neither. A module, a way of pooling or a setting that is not known is an
/// error.
Result<Pooling> find_pooling(const std::string& folder);

/// The files that this may read, relative to the folder; they need not be there.
std::vector<std::string> pooling_files(const std::string& folder);

}  // namespace sinter
