// Long prompts are fed in several calls of `prefill`. A call behind a filled cache is the same
// entry with other inputs, so the only choice is how many tokens a call takes (a prefill chunk):
// the most with which its arena fits the memory that activations may take. The plan itself says how
// large the arena is, whatever algorithm attention has.
#pragma once

#include <functional>

#include "driver/activation_memory.h"
#include "driver/generate/decoder.h"

namespace sinter {

struct PrefillOptions {
  int64_t activation_bytes = kActivationBytes;  // of a call's arena, at most
  std::optional<int64_t> chunk;                 // tokens of a call, at most
  /// Told after each call how many of the prompts' tokens are fed. False ends it with an error.
  std::function<bool(int64_t done, int64_t total)> progress;
};

/// The sizes of prompts that are fed to empty caches, `capacity` rows for each sequence.
struct PromptSizes {
  int64_t tokens = 0;  // in all
  int64_t sequences = 0;
  int64_t rows = 0;  // of the cache that the last call sees
  int64_t capacity = 0;
  Wanted wanted = Wanted::all;
};
PromptSizes prompt_sizes(llvm::ArrayRef<std::vector<int32_t>> prompts, int64_t capacity,
                         Wanted wanted);

struct PrefillChunk {
  int64_t tokens = 0;            // of each call, the last perhaps shorter
  int64_t calls = 0;             // in which all prompts are fed
  int64_t arena_bytes = 0;       // of the largest call
  int64_t activation_bytes = 0;  // that it may take
};

/// The arena of the last of calls of `count` tokens, which sees all rows; `count` may be more than
/// the program allows.
Result<int64_t> prefill_arena_bytes(const Program& program, const PromptSizes& sizes,
                                    int64_t count);

/// A chunk that is not all tokens is a multiple of 64 if 64 tokens fit: matrix products have whole
/// tiles then. All calls but the last have as many tokens, so a GPU's library is asked for few
/// sizes of products. Errors: symbol values that the program refuses; not even one token fits.
Result<PrefillChunk> choose_chunk(const Program& program, const PromptSizes& sizes,
                                  const PrefillOptions& options);

}  // namespace sinter
