// Settings of a Hugging Face folder for generating text.
#pragma once

#include "frontends/files/json.h"

namespace sinter {

/// Those that are set in `root` (of generation_config.json, or of an older config.json) such that
/// transformers would choose other tokens than the likeliest: "repetition_penalty 1.1".
std::vector<std::string> unapplied_settings(const JsonView& root);

}  // namespace sinter
