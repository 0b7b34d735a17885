// The model type WordPiece of a tokenizer.json.
#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/model.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

class WordPiece final : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, const std::string& prefix, int32_t unknown, int64_t most)
      : TokenModel(std::move(vocabulary)),
        inner_(this->vocabulary().trie().walk(Trie::root, prefix)),
        unknown_(unknown),
        max_characters_(most) {}

  Status encode(std::string_view word, std::vector<int32_t>& ids) const override {
    const size_t before = ids.size();
    int64_t characters = 0;
    for (size_t at = 0; at < word.size(); at += code_point_at(word, at).bytes) ++characters;
    bool known = characters <= max_characters_;
    for (size_t at = 0; known && at < word.size();) {
      const Trie::Node start = at == 0 ? Trie::root : inner_;
      std::optional<Trie::Match> piece;
      if (start != Trie::nowhere)
        piece = vocabulary().trie().longest_prefix(word.substr(at), start);
      known = piece.has_value();
      if (!known) break;
      ids.push_back(piece->id);
      at += piece->bytes;
    }
    if (known) return {};
    ids.resize(before);  // one unknown stands for the whole word
    ids.push_back(unknown_);
    return {};
  }

 private:
  Trie::Node inner_;  // where the pieces that go on with a word start
  int32_t unknown_;
  int64_t max_characters_;
};

}  // namespace

Result<TokenModelPtr> read_wordpiece(const JsonView& view) {
  SINTER_TRY(allow_keys(
      view, {"unk_token", "continuing_subword_prefix", "max_input_chars_per_word", "vocab"}));
  SINTER_LET(vocabulary, read_vocabulary(view["vocab"]));
  SINTER_LET(prefix, view["continuing_subword_prefix"].string_or("##"));
  SINTER_LET(most, view["max_input_chars_per_word"].integer_or(100, 0));
  SINTER_LET(unknown, view["unk_token"].string_or("[UNK]"));
  const auto id = vocabulary.find(unknown);
  if (!id) return view["unk_token"].mismatch("a piece of the vocabulary");
  return std::make_unique<WordPiece>(std::move(vocabulary), prefix, *id, most);
}

}  // namespace sinter
