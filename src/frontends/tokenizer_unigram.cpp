// The model type Unigram of a tokenizer.json.
#include <algorithm>
#include <limits>

#include "frontends/tokenizer_component.h"
#include "frontends/tokenizer_model.h"
#include "frontends/tokenizer_unicode.h"

namespace sinter {
namespace {

// How much less an unknown character counts than the least likely piece.
constexpr double unknown_penalty = 10.0;

class Unigram final : public TokenModel {
 public:
  Unigram(Vocabulary vocabulary, std::vector<double> scores, std::optional<int32_t> unknown,
          bool byte_fallback)
      : TokenModel(std::move(vocabulary)),
        scores_(std::move(scores)),
        unknown_score_(*std::min_element(scores_.begin(), scores_.end()) - unknown_penalty),
        unknown_(unknown),
        bytes_(byte_fallback ? byte_pieces(this->vocabulary()) : std::vector<int32_t>(256, -1)) {}

  Status encode(std::string_view word, std::vector<int32_t>& ids) const override {
    SINTER_LET(best, best_paths(word));
    std::vector<size_t> ends;
    for (size_t end = word.size(); end > 0; end = best[end].start) ends.push_back(end);
    // Neighbouring unknown characters are one piece.
    for (size_t begin = 0; !ends.empty(); ends.pop_back()) {
      const size_t end = ends.back();
      const bool unknown = best[end].id == unknown_;
      const bool goes_on = ends.size() > 1 && best[ends[ends.size() - 2]].id == unknown_;
      if (unknown && goes_on) continue;
      add_piece(word.substr(begin, end - begin), unknown, best[end].id, ids);
      begin = end;
    }
    return {};
  }

 private:
  static constexpr size_t unreached = std::numeric_limits<size_t>::max();
  /// The best way to cut a word up to some place: where its last piece starts.
  struct Path {
    size_t start = unreached;
    double score = 0;
    int32_t id = 0;

    void offer(size_t from, double sum, int32_t piece) {
      if (start == unreached || sum > score) *this = {from, sum, piece};
    }
  };

  Result<std::vector<Path>> best_paths(std::string_view word) const {
    std::vector<Path> best(word.size() + 1);
    const Trie& trie = vocabulary().trie();
    for (size_t at = 0; at < word.size();) {
      const double score = best[at].score;
      const size_t character = code_point_at(word, at).bytes;
      bool alone = false;  // the character is a piece
      Trie::Node node = Trie::root;
      for (size_t end = at; end < word.size();) {
        node = trie.step(node, word[end]);
        if (node == Trie::nowhere) break;
        ++end;
        const int32_t id = trie.id(node);
        if (id < 0) continue;
        best[end].offer(at, score + scores_[static_cast<size_t>(id)], id);
        alone = alone || end - at == character;
      }
      if (!alone) {
        if (!unknown_)
          return fail(
              "the text has a character that the tokenizer has no piece for, and no "
              "unknown piece either",
              {}, "use another text");
        best[at + character].offer(at, score + unknown_score_, *unknown_);
      }
      at += character;
    }
    return best;
  }

  void add_piece(std::string_view text, bool unknown, int32_t id, std::vector<int32_t>& ids) const {
    if (unknown) {
      // Several unknown characters together may spell a piece.
      if (auto spelled = vocabulary().find(text)) return ids.push_back(*spelled);
      const bool has_bytes = std::all_of(text.begin(), text.end(), [&](char byte) {
        return bytes_[static_cast<unsigned char>(byte)] >= 0;
      });
      if (has_bytes) {
        for (char byte : text) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
        return;
      }
    }
    ids.push_back(id);
  }

  std::vector<double> scores_;  // by id
  double unknown_score_;
  std::optional<int32_t> unknown_;
  std::vector<int32_t> bytes_;
};

}  // namespace

Result<TokenModelPtr> read_unigram(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"unk_id", "vocab", "byte_fallback"}));
  SINTER_LET(list, view["vocab"].array());
  std::vector<Vocabulary::Entry> entries;
  std::vector<double> scores;
  for (size_t i = 0; i < list->size(); ++i) {
    const JsonValue::Array* pair = (*list)[i].array();
    if (!pair || pair->size() != 2 || !(*pair)[0].string())
      return view["vocab"][i].mismatch("an array of a piece and its score");
    if (i == Vocabulary::most_ids)
      return view["vocab"].fail(fmt::format("more than {} pieces", Vocabulary::most_ids));
    entries.push_back({*(*pair)[0].string(), static_cast<int32_t>(i)});
    if (const double* score = (*pair)[1].real()) {
      scores.push_back(*score);
    } else {
      SINTER_LET(whole, view["vocab"][i][1].number());
      scores.push_back(whole);
    }
  }
  auto vocabulary = Vocabulary::create(entries);
  if (!vocabulary)
    return view["vocab"].fail(vocabulary.error().what, "download the tokenizer again");
  std::optional<int32_t> unknown;
  if (view["unk_id"].present()) {
    SINTER_LET(id, view["unk_id"].integer(0, vocabulary->size() - 1));
    unknown = static_cast<int32_t>(id);
  }
  SINTER_LET(byte_fallback, view["byte_fallback"].boolean_or(false));
  return std::make_unique<Unigram>(std::move(*vocabulary), std::move(scores), unknown,
                                   byte_fallback);
}

}  // namespace sinter
