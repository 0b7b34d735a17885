// Many prompts through a few places: sequences that end make room for the next prompts.
#pragma once

#include "driver/generate/generate.h"
#include "driver/generate/sequence_batch.h"

namespace sinter {

struct ManyOptions {
  int64_t count = 64;              // tokens to add to each prompt, at most
  int64_t places = kMaxSequences;  // sequences that decode together, at most
  bool stop_at_eos = true;
  std::vector<int32_t> ends;  // tokens that end a sequence, beside the model's own
  /// The seed is the first prompt's; the others have seeds of their own (sequence_seed).
  Sampling sampling;
  PrefillOptions prefill;
  /// Told the places and the bytes of their caches, before these are taken.
  std::function<void(int64_t places, int64_t cache_bytes)> on_places;
  /// Called with the continuation of a prompt as soon as it is complete; false ends the generation.
  std::function<bool(size_t prompt, llvm::ArrayRef<int32_t> tokens)> on_sequence;
};

struct ManyGeneration {
  int64_t places = 0, cache_bytes = 0;
  int64_t prompt_tokens = 0, tokens = 0;  // that were fed first, and that were chosen
  int64_t steps = 0;
  double seconds = 0;
};

/// The most places, at most `wanted` and as many as the plan decodes together, whose caches fit the
/// memory of the model's device beside the activations of a prompt; an error if not even one does.
Result<int64_t> places_that_fit(const Executable& executable, int64_t wanted, int64_t capacity,
                                const PrefillOptions& prefill);

/// Continues every prompt. The prompts have passed check_prompts.
Result<ManyGeneration> generate_many(const Model& model, const ReadyPlan& ready,
                                     llvm::ArrayRef<std::vector<int32_t>> prompts,
                                     const ManyOptions& options);

}  // namespace sinter
