// The models that cut a pre-token into pieces of their vocabulary.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "frontends/tokenizer/vocabulary.h"

namespace sinter {

/// Immutable. Safe from several threads.
class TokenModel {
 public:
  explicit TokenModel(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  virtual ~TokenModel() = default;

  const Vocabulary& vocabulary() const { return vocabulary_; }
  /// Byte-pair encoding, whose decoder keeps every space.
  virtual bool merges_pairs() const { return false; }
  /// Appends the ids of `word`: UTF-8, not empty.
  virtual Status encode(std::string_view word, std::vector<int32_t>& ids) const = 0;

 private:
  Vocabulary vocabulary_;
};

using TokenModelPtr = std::unique_ptr<const TokenModel>;

/// Byte-pair encoding: the pieces of the characters, merged pair by pair in the order of the merge
/// list (Sennrich et al., 2016).
Result<TokenModelPtr> read_bpe(const JsonView& view);
/// The longest piece that the rest of the word starts with, again and again.
Result<TokenModelPtr> read_wordpiece(const JsonView& view);
/// The pieces whose log probabilities have the largest sum (Kudo, 2018), by Viterbi's algorithm.
Result<TokenModelPtr> read_unigram(const JsonView& view);

/// The "model" of a tokenizer.json.
Result<TokenModelPtr> read_token_model(const JsonView& view);

/// Ids of the pieces <0x00> … <0xFF>; -1 where there is none.
std::vector<int32_t> byte_pieces(const Vocabulary& vocabulary);

}  // namespace sinter
