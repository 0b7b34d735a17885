// An encoder on any device: sequences of tokens of unequal length in, the last hidden state out.
#pragma once

#include "driver/generate/decoder.h"
#include "frontends/model/model_spec.h"

namespace sinter {

/// The inputs of one call of `encode` (see frontends/model/build_model.h) with these sequences one
/// after the other, all of token type 0, and all symbol values.
DecoderCall pack_texts(const ModelSpec& spec, llvm::ArrayRef<Symbol> symbols,
                       llvm::ArrayRef<std::vector<int32_t>> tokens);

/// The entry `encode`; an error where the plan has none.
Result<const EntryPlan*> encode_entry(const Program& program);

/// One call; its first output is last_hidden_state [tokens in all, hidden]. The tokens must be in
/// the vocabulary; an error if there are more than the model's positions, or none.
Result<RunResult> encode(const ModelSpec& spec, const Model& model,
                         llvm::ArrayRef<std::vector<int32_t>> tokens,
                         const CallOptions& options = {});

}  // namespace sinter
