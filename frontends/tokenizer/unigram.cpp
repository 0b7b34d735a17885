// The model type Unigram of a tokenizer.json.
#include <algorithm>

#include "frontends/tokenizer/best_path.h"
#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/model.h"

namespace sinter {
namespace {

// How much less an unknown character counts than the least likely piece.
constexpr double unknown_penalty = 10.0;

class Unigram final : public TokenModel {
 public:
  Unigram(Vocabulary vocabulary, UnigramScores scores, bool byte_fallback)
      : TokenModel(std::move(vocabulary)),
        scores_(std::move(scores)),
        bytes_(byte_fallback ? byte_pieces(this->vocabulary()) : std::vector<int32_t>(256, -1)) {}

  Status encode(std::string_view word, std::vector<int32_t>& ids) const override {
    const auto path = best_path(word, vocabulary().trie(), scores_);
    if (!path)
      return fail(
          "the text has a character that the tokenizer has no piece for, and no unknown "
          "piece either",
          {}, "use another text");
    size_t begin = 0;
    for (size_t i = 0; i < path->size(); ++i) {
      const auto [end, id] = (*path)[i];
      const bool unknown = id == scores_.id;
      // Neighbouring unknown characters are one piece.
      if (unknown && i + 1 < path->size() && (*path)[i + 1].id == scores_.id) continue;
      if (unknown)
        add_unknown(word.substr(begin, end - begin), ids);
      else
        ids.push_back(id);
      begin = end;
    }
    return {};
  }

 private:
  void add_unknown(std::string_view text, std::vector<int32_t>& ids) const {
    // Several unknown characters together may spell a piece.
    if (auto spelled = vocabulary().find(text)) return ids.push_back(*spelled);
    const auto id_of = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    const bool has_bytes =
        std::all_of(text.begin(), text.end(), [&](char byte) { return id_of(byte) >= 0; });
    if (!has_bytes) return ids.push_back(*scores_.id);
    for (char byte : text) ids.push_back(id_of(byte));
  }

  UnigramScores scores_;
  std::vector<int32_t> bytes_;
};

}  // namespace

Result<TokenModelPtr> read_unigram(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"unk_id", "vocab", "byte_fallback"}));
  SINTER_LET(list, view["vocab"].array());
  if (list->size() > Vocabulary::max_ids)
    return view["vocab"].fail(fmt::format("more than {} pieces", Vocabulary::max_ids));
  std::vector<Vocabulary::Entry> entries;
  UnigramScores scores;
  for (size_t i = 0; i < list->size(); ++i) {
    const JsonValue::Array* pair = (*list)[i].array();
    if (!pair || pair->size() != 2 || !(*pair)[0].string())
      return view["vocab"][i].mismatch("an array of a piece and its score");
    entries.push_back({*(*pair)[0].string(), static_cast<int32_t>(i)});
    if (const double* score = (*pair)[1].real()) {
      scores.pieces.push_back(*score);
    } else {
      SINTER_LET(whole, view["vocab"][i][1].number());
      scores.pieces.push_back(whole);
    }
  }
  auto vocabulary = Vocabulary::create(entries);
  if (!vocabulary)
    return view["vocab"].fail(vocabulary.error().what, "download the tokenizer again");
  scores.unknown = *std::min_element(scores.pieces.begin(), scores.pieces.end()) - unknown_penalty;
  if (view["unk_id"].present()) {
    SINTER_LET(id, view["unk_id"].integer(0, vocabulary->size() - 1));
    scores.id = static_cast<int32_t>(id);
  }
  SINTER_LET(byte_fallback, view["byte_fallback"].boolean_or(false));
  return std::make_unique<Unigram>(std::move(*vocabulary), std::move(scores), byte_fallback);
}

}  // namespace sinter
