// How prompts were fed, for people and for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "driver/generate/prefill_chunk.h"

namespace sinter {

/// "8 calls of at most 512 tokens, activations take 1.9 GB of 2.0 GB"
std::string prefill_text(const PrefillChunk& chunk);
nlohmann::ordered_json prefill_json(const PrefillChunk& chunk);

}  // namespace sinter
