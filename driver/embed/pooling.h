// How a text becomes one vector: what sentence-transformers writes beside a model. The prompt that
// stands before a text, its longest length, and how hidden states are pooled.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/error.h"

namespace sinter {

enum class PoolingKind : uint8_t {
  mean,  // of all tokens
  cls,   // the first token
};
std::string_view to_string(PoolingKind kind);

struct Prompt {
  std::string name, text;
};

struct Pooling {
  PoolingKind kind = PoolingKind::mean;
  bool normalize = false;                          // to length 1
  std::optional<int64_t> max_tokens = {};          // of a text, special tokens included
  bool pools_prompt = true;                        // a prompt's tokens are pooled too
  std::vector<Prompt> prompts = {};                // names differ
  std::optional<std::string> default_prompt = {};  // a name of `prompts`
};

/// By modules.json in the model's folder, and the files that it names; the default where there is
/// none. A module, a way of pooling or a setting that is not known is an error.
Result<Pooling> find_pooling(const std::string& folder);

/// The text that stands before each text: `prompt`, or the one called `name`, or the default; "" is
/// none. An error of the code `usage` where both are given, or no prompt has the name.
Result<std::string> choose_prompt(const Pooling& pooling, const std::optional<std::string>& prompt,
                                  const std::optional<std::string>& name);
/// The files that this may read, relative to the folder; they need not be there.
std::vector<std::string> pooling_files(const std::string& folder);

}  // namespace sinter
