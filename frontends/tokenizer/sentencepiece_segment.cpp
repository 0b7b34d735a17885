#include "frontends/tokenizer/sentencepiece_segment.h"

#include <algorithm>
#include <limits>

#include "frontends/tokenizer/score_merges.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

using Type = SentencePieceModel::Type;

class UnigramSegmenter final : public SentencePieceSegmenter {
 public:
  UnigramSegmenter(const SentencePieceModel& model, int32_t unknown)
      : pieces_(pieces_of(model, {Type::normal, Type::user_defined})) {
    float least = std::numeric_limits<float>::max();
    float most = std::numeric_limits<float>::min();  // as there: not the lowest
    for (const auto& piece : model.pieces) {
      if (piece.type != Type::normal) continue;
      least = std::min(least, piece.score);
      most = std::max(most, piece.score);
    }
    for (const auto& piece : model.pieces) {
      const bool forced = piece.type == Type::user_defined;  // so good that it is always taken
      scores_.pieces.push_back(forced ? static_cast<float>(piece.text.size()) * most - 0.1
                                      : static_cast<double>(piece.score));
    }
    scores_.unknown = least - 10.0f;
    scores_.id = unknown;
    scores_.single_precision = true;
  }

  std::vector<PathPiece> segment(std::string_view text) const override {
    return *best_path(text, pieces_, scores_);  // there is an unknown piece
  }

 private:
  Trie pieces_;
  UnigramScores scores_;
};

/// User-defined pieces are taken first and never merge.
class BpeSegmenter final : public SentencePieceSegmenter {
 public:
  BpeSegmenter(const SentencePieceModel& model, int32_t unknown)
      : user_defined_(pieces_of(model, {Type::user_defined})), unknown_(unknown) {
    const std::vector<Trie::Entry> pieces = pieces_of(model, {Type::normal});
    std::vector<float> scores;
    for (const auto& piece : model.pieces) {
      sizes_.push_back(piece.text.size());
      if (piece.type == Type::normal) scores.push_back(piece.score);
    }
    // A character that is no piece can be a part of one: it gets an id after the pieces' ids. One
    // more id is for the characters that no piece has.
    other_ = static_cast<int32_t>(sizes_.size());
    const std::vector<Trie::Entry> symbols = with_characters(pieces);
    merges_ = merges_by_score(pieces, scores, symbols, other_ + 1);
    symbols_ = Trie(symbols);
  }

  std::vector<PathPiece> segment(std::string_view text) const override {
    std::vector<int32_t> ids;
    for (size_t at = 0; at < text.size();) {
      if (const auto piece = user_defined_.longest_prefix(text.substr(at))) {
        ids.push_back(piece->id);
        at += piece->bytes;
        continue;
      }
      const std::string_view character = text.substr(at, code_point_at(text, at).bytes);
      ids.push_back(symbols_.find(character).value_or(other_));
      at += character.size();
    }
    merges_.apply(ids);
    std::vector<PathPiece> path;
    size_t end = 0;
    for (int32_t id : ids) {
      const auto index = static_cast<size_t>(id);
      const bool known = index < sizes_.size();
      end += known ? sizes_[index] : code_point_at(text, end).bytes;
      path.push_back({end, known ? id : unknown_});
    }
    return path;
  }

 private:
  std::vector<Trie::Entry> with_characters(const std::vector<Trie::Entry>& pieces) {
    std::vector<Trie::Entry> symbols = pieces, others;
    const Trie known(pieces);
    for (const Trie::Entry& piece : pieces)
      for (size_t at = 0; at < piece.key.size();) {
        const std::string_view character = piece.key.substr(at, code_point_at(piece.key, at).bytes);
        at += character.size();
        if (!known.find(character)) others.push_back({character, 0});
      }
    const auto less = [](const Trie::Entry& a, const Trie::Entry& b) { return a.key < b.key; };
    const auto same = [](const Trie::Entry& a, const Trie::Entry& b) { return a.key == b.key; };
    std::sort(others.begin(), others.end(), less);
    others.erase(std::unique(others.begin(), others.end(), same), others.end());
    for (const Trie::Entry& other : others) symbols.push_back({other.key, other_++});
    return symbols;
  }

  Trie user_defined_, symbols_;
  MergeTable merges_;
  std::vector<size_t> sizes_;  // of the pieces, in bytes
  int32_t unknown_;
  int32_t other_ = 0;
};

}  // namespace

std::vector<Trie::Entry> pieces_of(const SentencePieceModel& model,
                                   std::initializer_list<Type> types) {
  std::vector<Trie::Entry> entries;
  for (size_t id = 0; id < model.pieces.size(); ++id)
    if (std::find(types.begin(), types.end(), model.pieces[id].type) != types.end())
      entries.push_back({model.pieces[id].text, static_cast<int32_t>(id)});
  return entries;
}

Result<SegmenterPtr> create_segmenter(const SentencePieceModel& model, int32_t unknown) {
  switch (model.algorithm) {
    case SentencePieceModel::Algorithm::unigram:
      return std::make_unique<UnigramSegmenter>(model, unknown);
    case SentencePieceModel::Algorithm::bpe:
      if (!pieces_of(model, {Type::unused}).empty())
        return fail("unused pieces in a BPE model are not supported");
      return std::make_unique<BpeSegmenter>(model, unknown);
    default:
      return fail(fmt::format("the model type {} is not supported, expected 1 (unigram) or 2 (BPE)",
                              static_cast<int>(model.algorithm)));
  }
}

}  // namespace sinter
