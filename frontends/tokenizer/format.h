// The interface of each kind of tokenizer file: text to ids, and tokens to the stages that decode
// them.
#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "frontends/tokenizer/decoder.h"
#include "frontends/tokenizer/folder_tokens.h"

namespace sinter {

/// Immutable. Safe from several threads.
class TokenizerFormat {
 public:
  virtual ~TokenizerFormat() = default;

  /// `text` is UTF-8.
  virtual Result<std::vector<int32_t>> encode(std::string_view text, bool add_special) const = 0;
  /// The largest id and one.
  virtual int32_t vocabulary_size() const = 0;
  virtual std::optional<int32_t> token_id(std::string_view piece) const = 0;
  /// Nothing if there is no such id.
  virtual std::optional<std::string_view> piece(int32_t id) const = 0;
  virtual bool is_special(int32_t id) const = 0;
  virtual DecoderChain decoder() const = 0;
};

using TokenizerFormatPtr = std::shared_ptr<const TokenizerFormat>;

/// A tokenizer.json of Hugging Face's tokenizers library, with what the other files of its folder
/// say.
Result<TokenizerFormatPtr> open_tokenizer_json(const std::string& path);
/// The same from a document in memory; errors name its places.
Result<TokenizerFormatPtr> read_tokenizer_json(const JsonView& view, const FolderTokens& folder);
/// A vocab.txt: WordPiece, as in BERT. What the other files of its folder say counts.
Result<TokenizerFormatPtr> open_tokenizer_vocab_txt(const std::string& path);
/// A vocab.json with merges.txt beside it: byte-level BPE, as in GPT-2 and RoBERTa.
Result<TokenizerFormatPtr> open_tokenizer_vocab_json(const std::string& path);
/// A tokenizer.model of SentencePiece.
Result<TokenizerFormatPtr> open_tokenizer_sentencepiece(const std::string& path);
/// A tokenizer.bin of llama2.c.
Result<TokenizerFormatPtr> open_tokenizer_llama2c(const std::string& path);

}  // namespace sinter
