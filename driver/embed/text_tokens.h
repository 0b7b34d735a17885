// Texts as token ids for an encoder.
#pragma once

#include <llvm/ADT/ArrayRef.h>

#include "frontends/tokenizer/tokenizer.h"

namespace sinter {

struct TextTokens {
  std::vector<std::vector<int32_t>> texts;
  std::vector<size_t> cut;    // numbers of the texts that had more tokens, from 0
  int64_t prompt_tokens = 0;  // of each text, the first ones
};

/// Ids of each text, after `prompt`, with the special tokens around it. With `most`, a text of more
/// tokens keeps its first ones and the special tokens at its end, `most` together, as
/// sentence-transformers cuts it. The prompt's tokens are counted as it counts them: those of the
/// prompt alone, without a special token at its end.
Result<TextTokens> tokenize_texts(const Tokenizer& tokenizer, llvm::ArrayRef<std::string> texts,
                                  std::optional<int64_t> most = {}, std::string_view prompt = {});

}  // namespace sinter
