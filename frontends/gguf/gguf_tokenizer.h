// The tokenizer of a GGUF file, put together as the tokenizer.json and tokenizer_config.json of the
// model's folder.
#pragma once

#include "frontends/files/json.h"
#include "frontends/gguf/gguf_file.h"
#include "frontends/tokenizer/tokenizer.h"

namespace sinter {

/// The tokenizer.json; nothing where the file has no tokens. Read are the kinds "gpt2" (byte-level
/// BPE), "llama" (SentencePiece's BPE by scores), "bert" (WordPiece) and "t5" (SentencePiece's
/// unigram model). Errors: another kind, a pre-tokenizer that is not known, arrays that do not fit
/// one another.
Result<std::optional<JsonDocument>> gguf_tokenizer_json(const GgufFile& file);

/// bos_token, eos_token and chat_template, as far as the file has them.
JsonDocument gguf_tokenizer_config(const GgufFile& file);

/// The tokenizer; nothing where the file has none.
Result<std::optional<Tokenizer>> open_gguf_tokenizer(const std::string& path);

}  // namespace sinter
