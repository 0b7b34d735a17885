// Between texts and token ids, by the tokenizer in the model's folder.
#pragma once

#include "frontends/tokenizer/tokenizer.h"

namespace sinter {

/// A file of ids, at least one, separated by commas or white space (integers.h).
Result<std::vector<int32_t>> read_tokens(const std::string& path);
/// A text file; an error names the byte that is not UTF-8.
Result<std::string> read_text(const std::string& path);
/// A text file as ids, special tokens of a beginning included.
Result<std::vector<int32_t>> read_text_tokens(const std::string& model, const std::string& path);
/// A text as ids, special tokens of a beginning included.
Result<std::vector<int32_t>> tokenize(const std::string& model, std::string_view text);
/// An error that names `where` and the byte, for text that is not UTF-8.
Status check_utf8(std::string_view text, const std::string& where);

/// The folder that holds a model's own files: the model itself, or where its file lies; of a plan's
/// folder the one in it, whose files are then compared with their hashes. A GGUF file holds them
/// itself.
Result<std::string> model_files(const std::string& model);
/// The tokenizer in the model's folder; nothing where there is none. A tokenizer file in place of a
/// model is that tokenizer.
Result<std::optional<Tokenizer>> find_tokenizer(const std::string& model);
/// The same; an error where there is none.
Result<Tokenizer> open_tokenizer(const std::string& model);

}  // namespace sinter
