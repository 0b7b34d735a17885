// tokenizer.model: a SentencePiece model as it stands in the file, a protocol buffer.
#pragma once

#include <string>
#include <vector>

#include "ir/error.h"

namespace sinter {

struct SentencePieceModel {
  enum class Type { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::normal;
  };
  enum class Algorithm { unigram = 1, bpe = 2, word = 3, character = 4 };

  std::vector<Piece> pieces;  // by id
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;             // unknown characters become byte pieces
  std::string unknown_text = " \u2047 ";  // what an unknown piece decodes to
  int64_t bos = 1;                        // negative: none
  std::string character_map;              // as CharacterMap reads it; may be empty
  bool add_dummy_prefix = true;           // a space before the text
  bool remove_extra_whitespaces = true;   // at its ends, and of several in a row all but one
  // Fields that change what the model means and are not supported; refused unless as here.
  bool spaces_as_suffix = false;
  bool escape_whitespaces = true;
  bool has_denormalizer = false;
};

/// Fails if the file is no protocol buffer or its pieces cannot be: empty, not UTF-8, twice, with a
/// score that is NaN, with no or several unknown pieces, byte pieces that are not the 256 bytes.
Result<SentencePieceModel> read_sentencepiece_model(const std::string& path);

}  // namespace sinter
