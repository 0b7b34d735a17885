// The device memory for prompts of given lengths: the plan's own bytes.
#pragma once

#include "driver/generate/prefill_chunk.h"

namespace sinter {

/// Prompts of one length each.
struct AskedPrompts {
  int64_t sequences = 0, length = 0;
};
/// "8x2048". An error names `where`.
Result<AskedPrompts> parse_prompts(std::string_view text, const std::string& where);

struct PromptMemory {
  AskedPrompts prompts;
  int64_t weight_bytes = 0;
  int64_t cache_bytes = 0;  // with a row for each token of the prompts
  PrefillChunk prefill;
  int64_t at_once_bytes = 0;  // activations of one call with all tokens
  int64_t bytes() const { return weight_bytes + cache_bytes + prefill.arena_bytes; }
};

/// The memory that a language model's plan needs for the prompts. Errors: a plan without room for
/// them; as choose_chunk.
Result<PromptMemory> prompt_memory(const Program& program, const AskedPrompts& prompts,
                                   const PrefillOptions& options);

}  // namespace sinter
