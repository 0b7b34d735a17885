// The state that one step of generation hands to the next: the inputs of the entries `decode` and
// `sample` by name. Output `next.X` of `sample` is input X of the next step; the other inputs stay.
#pragma once

#include <map>

#include "driver/generate/generator.h"

namespace sinter {

/// An executable that has run its prompts, before the first token is chosen.
struct Started {
  std::unique_ptr<Session> session;
  PrefillChunk chunk;                                     // by which the prompts were fed
  std::vector<int64_t> symbol_values;                     // of decode and sample
  HostTensor logits;                                      // of the last token of each sequence
  std::map<std::string, HostTensor, std::less<>> inputs;  // tokens excepted
};

/// Symbol values leave room for `most` tokens after each prompt.
Result<Started> start_generation(const Executable& executable,
                                 llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t most,
                                 const Sampling& sampling,
                                 const std::optional<StreamingCache>& streaming,
                                 const PrefillOptions& prefill = {});

/// Chooses tokens: runs `sample` on `logits` and the inputs, and moves the inputs one step on.
/// Returns the tokens, which are an input too now.
Result<std::vector<int32_t>> choose_tokens(const Executable& executable, Started& state);

/// Runs `decode` on the inputs.
Status decode_step(const Executable& executable, Started& state);
/// One step with a given token instead of a chosen one (one sequence).
Status force_token(const Executable& executable, Started& state, int32_t token);

/// "X" of output "next.X"; empty for other outputs.
std::string_view carried_input(std::string_view output);

}  // namespace sinter
