// Text to token ids and back, as the model's own tokenizer does it.
//
// Read are tokenizer.json (Hugging Face tokenizers; BPE, WordPiece, Unigram), tokenizer.model
// (SentencePiece; BPE, unigram), tokenizer.bin (llama2.c), and what came before tokenizer.json:
// vocab.txt (BERT) and vocab.json with merges.txt (GPT-2, RoBERTa); and what tokenizer_config.json,
// special_tokens_map.json and added_tokens.json beside them say (folder_tokens.h). A component or
// setting that is not known is an error that names its place in the file.
//
// Ids and texts equal the reference libraries' results, with these exceptions:
// - Properties of characters come from one version of Unicode; the libraries mix several, so that
//   characters of the last ten years may differ.
// - Truncation and padding, which are for batches, are not applied. Dropout is refused.
// - An added token whose id contradicts the vocabulary is refused, and one of tokenizer.json with
//   any other id has that id; Hugging Face's library numbers such tokens itself, with a warning. A
//   token of the other files gets the library's number; another id there is refused.
// - A token that a tokenizer.model lacks is refused, wherever a file beside it names it.
// - An added token that stands in normalized text is decoded as the normalizer writes it, as that
//   library does from version 0.23 on; before, as it is spelled.
// - A tokenizer class of transformers 5 that puts components of its own in the place of those in
//   tokenizer.json does not count (class_settings.h says what does).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter {

class JsonView;
class TokenizerFormat;

/// The tokenizer file that Tokenizer::open takes in a folder.
std::optional<std::string> find_tokenizer_file(const std::string& folder);
/// One of the usual names.
bool is_tokenizer_file_name(std::string_view name);

/// Immutable; copies share it, between threads too.
class Tokenizer {
 public:
  /// A tokenizer file, told by its name's end, or a folder that holds one under its usual name:
  /// tokenizer.json, tokenizer.model, tokenizer.bin, vocab.txt or vocab.json, the first of them
  /// that there is.
  static Result<Tokenizer> open(const std::string& path);
  /// A tokenizer.json in memory, without further files.
  static Result<Tokenizer> read(const JsonView& json);

  /// Ids of `text`, which must be UTF-8; with `add_special` the special tokens around a text
  /// (BOS, [CLS] … [SEP]). Special tokens that the text spells are recognized where the file lists
  /// them.
  Result<std::vector<int32_t>> encode(std::string_view text, bool add_special) const;

  /// Text of `ids`, always UTF-8; `skip_special` leaves special tokens out. An id that is not in
  /// the vocabulary is an error.
  Result<std::string> decode(std::span<const int32_t> ids, bool skip_special) const;

  /// The largest id and one. Not every id below must exist; a model may have more rows.
  int32_t vocabulary_size() const;
  std::optional<int32_t> token_id(std::string_view piece) const;
  /// The piece as decoding takes it: as the file spells it, and a normalized added token as the
  /// normalizer writes it. Nothing if there is no such id.
  std::optional<std::string> piece(int32_t id) const;
  /// Whether decoding without special tokens leaves the id out.
  bool is_special(int32_t id) const;

 private:
  friend class TextStream;
  explicit Tokenizer(std::shared_ptr<const TokenizerFormat> format) : format_(std::move(format)) {}
  std::shared_ptr<const TokenizerFormat> format_;
};

/// Decodes ids one by one. All texts together equal what decode() gives for all ids.
///
/// A continuation is part of its prompt's text: push the prompt's ids first and drop their text,
/// else the space before the first word can be lost.
///
/// An id without a piece is no error here, as it is for decode(): models have rows that pad the
/// vocabulary to a round number, and may choose one. It is decoded like a piece that is U+FFFD.
class TextStream {
 public:
  TextStream(const Tokenizer& tokenizer, bool skip_special);
  TextStream(TextStream&&) noexcept;
  ~TextStream();

  /// The text that is certain now: UTF-8, empty while a character or a row of byte tokens is
  /// unfinished.
  Result<std::string> push(int32_t id);
  /// The rest: what ended unfinished is U+FFFD.
  Result<std::string> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinter
