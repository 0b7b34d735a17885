// Settings of a Hugging Face folder for generating text.
#pragma once

#include "frontends/files/json.h"

namespace sinter {

/// The settings in `root` (a generation_config.json, or an older config.json) that would make
/// transformers choose other tokens than the likeliest: "repetition_penalty 1.1".
std::vector<std::string> unapplied_settings(const JsonView& root);

}  // namespace sinter
