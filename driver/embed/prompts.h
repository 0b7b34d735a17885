// Prompts of an encoder: texts that stand before each text, as sentence-transformers has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/error.h"

namespace sinter {

inline constexpr const char* kPromptsFile = "config_sentence_transformers.json";

struct Prompt {
  std::string name, text;
};

struct Prompts {
  std::vector<Prompt> all;                       // names differ
  std::optional<std::string> default_name = {};  // of one of them
};

/// By config_sentence_transformers.json in a folder that has a modules.json. A setting there that
/// would change the vectors is an error.
Result<Prompts> read_prompts(const std::string& folder);

/// The text that stands before each text: `prompt`, or the one called `name`, or the default; "" is
/// none. An error of the code `usage` where both are given, or no prompt has the name.
Result<std::string> choose_prompt(const Prompts& prompts, const std::optional<std::string>& prompt,
                                  const std::optional<std::string>& name);

}  // namespace sinter
