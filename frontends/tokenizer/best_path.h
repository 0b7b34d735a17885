// The core of the unigram model: the pieces of a word whose scores have the largest sum.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "frontends/tokenizer/trie.h"

namespace sinter {

struct UnigramScores {
  std::vector<double> pieces;     // by id
  double unknown = 0;             // of a character without a piece
  std::optional<int32_t> id;      // of such a character
  bool single_precision = false;  // sums are rounded to float, as SentencePiece keeps them
};

struct PathPiece {
  size_t end;  // byte of the word after the piece; it starts where the one before it ends
  int32_t id;
};

/// By Viterbi's algorithm. Of equal sums the piece that starts first wins. Nothing if a character
/// has no piece and scores.id none either. `word` is UTF-8.
std::optional<std::vector<PathPiece>> best_path(std::string_view word, const Trie& pieces,
                                                const UnigramScores& scores);

}  // namespace sinter
