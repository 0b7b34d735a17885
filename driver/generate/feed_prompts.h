// Prompts of unequal length, fed to empty caches in calls of `prefill`.
//
// A call takes the next tokens of the packed prompts, whichever sequences they belong to:
//
//   prompts of 5, 1 and 4 tokens     a a a a a b c c c c
//   calls of at most 4               a a a a|a b c c|c c
//
// Only the logits at a prompt's end count; a call in which no prompt ends computes its last token's
// logits in vain, since a call has at least one row of logits.
#pragma once

#include "driver/generate/prefill_chunk.h"

namespace sinter {

/// The tokens of one call: a run of each sequence, empty for some.
struct PromptCall {
  std::vector<std::vector<int32_t>> tokens;
  std::vector<int64_t> lengths;  // of the sequences before the call
  std::vector<bool> ends;        // whether the sequence's last token is in the call
};

/// `chunk` tokens for each call, the last perhaps fewer. No prompt is empty.
std::vector<PromptCall> cut_prompts(llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t chunk);

/// Runs `prefill` on prompts that nothing stands before in the session's caches, `capacity` rows
/// for each; returns the logits of each prompt's last token, [sequences, vocabulary]. After an
/// error the caches hold a part of the prompts, and the session is of no more use.
Result<HostTensor> feed_prompts(Session& session, const Program& program,
                                llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t capacity,
                                int64_t chunk, const PrefillOptions& options = {});

}  // namespace sinter
