// How SentencePiece's models cut a normalized text into pieces.
#pragma once

#include <memory>

#include "frontends/tokenizer/best_path.h"
#include "frontends/tokenizer/sentencepiece_file.h"

namespace sinter {

/// Immutable. Safe from several threads.
class SentencePieceSegmenter {
 public:
  virtual ~SentencePieceSegmenter() = default;
  /// Unknown characters, one by one, have the id of the unknown piece.
  virtual std::vector<PathPiece> segment(std::string_view text) const = 0;
};

using SegmenterPtr = std::unique_ptr<const SentencePieceSegmenter>;

/// Pieces of these types, with their ids. Borrows the model's texts.
std::vector<Trie::Entry> pieces_of(const SentencePieceModel& model,
                                   std::initializer_list<SentencePieceModel::Type> types);

/// Errors have no place.
Result<SegmenterPtr> create_segmenter(const SentencePieceModel& model, int32_t unknown);

}  // namespace sinter
