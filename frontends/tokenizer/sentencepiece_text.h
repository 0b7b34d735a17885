// SentencePiece's normalization of a text before it is cut into pieces, and its decoding of pieces
// to a text.
#pragma once

#include "frontends/tokenizer/character_map.h"
#include "frontends/tokenizer/decoder.h"
#include "frontends/tokenizer/sentencepiece_file.h"
#include "frontends/tokenizer/trie.h"

namespace sinter {

inline constexpr std::string_view space_mark = "\u2581";  // stands for a space in pieces

/// Maps characters, removes extra spaces, puts the dummy prefix, writes spaces as marks.
class SentencePieceNormalizer {
 public:
  /// `user_defined` are the pieces that stand in a text as they are.
  static Result<SentencePieceNormalizer> create(const SentencePieceModel& model, Trie user_defined);

  Result<std::string> normalize(std::string_view text) const;

 private:
  struct Step {
    std::string_view text;  // what becomes of
    size_t bytes;           // these many bytes
  };
  Step step(std::string_view text) const;

  std::optional<CharacterMap> map_;
  Trie user_defined_;
  bool dummy_prefix_ = false;
  bool trims_ = false;  // removes extra spaces
};

/// Pieces to text. Unlike Hugging Face's byte fallback, each byte that is no part of a character
/// becomes one U+FFFD.
DecoderChain sentencepiece_decoder(const SentencePieceModel& model);

}  // namespace sinter
