#include "frontends/tokenizer/sentencepiece_text.h"

#include "frontends/tokenizer/text_growth.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

void append_marked(std::string& out, std::string_view text) {
  for (char byte : text) {
    if (byte == ' ')
      out += space_mark;
    else
      out += byte;
  }
}

class SentencePieceStage final : public WholeTokenStage {
 public:
  explicit SentencePieceStage(const SentencePieceModel& model)
      : drops_one_(model.add_dummy_prefix || model.remove_extra_whitespaces),
        drops_all_(model.remove_extra_whitespaces),
        unknown_text_(model.unknown_text) {
    for (const auto& piece : model.pieces)
      if (piece.type == SentencePieceModel::Type::unknown) unknown_ = piece.text;
  }
  DecoderStagePtr clone() const override { return std::make_unique<SentencePieceStage>(*this); }
  Status finish(TokenSink sink) override {
    std::string text;
    take_bytes(true, text);
    return sink(text, true);
  }

 protected:
  Status token(std::string_view token, TokenSink sink) override {
    std::string text;
    if (const auto byte = byte_of_piece(token)) {
      bytes_ += static_cast<char>(*byte);
      at_start_ = false;
      take_bytes(false, text);
      return sink(text, false);
    }
    take_bytes(true, text);
    if (token == unknown_) {
      text += unknown_text_;
    } else {
      const bool drops = at_start_ && drops_one_ && token.starts_with(space_mark);
      if (drops) token.remove_prefix(space_mark.size());
      if (drops && !drops_all_) at_start_ = false;
      append_spaced(text, token);
    }
    if (!text.empty()) at_start_ = false;
    return sink(text, false);
  }

 private:
  static void append_spaced(std::string& text, std::string_view token) {
    size_t done = 0;
    for (size_t at; (at = token.find(space_mark, done)) != token.npos;
         done = at + space_mark.size()) {
      text += token.substr(done, at - done);
      text += ' ';
    }
    text += token.substr(done);
  }

  /// Moves whole characters from bytes_ to `text`; at the end of a row of bytes all of it.
  void take_bytes(bool row_ends, std::string& text) {
    size_t done = 0;
    while (done < bytes_.size()) {
      const Utf8Prefix prefix = utf8_prefix(std::string_view(bytes_).substr(done));
      if (prefix.kind == Utf8Prefix::Kind::incomplete && !row_ends) break;
      if (prefix.kind == Utf8Prefix::Kind::valid) {
        text.append(bytes_, done, prefix.bytes);
        done += prefix.bytes;
      } else {
        text += "\xef\xbf\xbd";
        ++done;
      }
    }
    bytes_.erase(0, done);
  }

  bool drops_one_, drops_all_;  // marks at the start of the text
  std::string unknown_, unknown_text_;
  bool at_start_ = true;
  std::string bytes_;
};

}  // namespace

Result<SentencePieceNormalizer> SentencePieceNormalizer::create(const SentencePieceModel& model,
                                                                Trie user_defined) {
  SentencePieceNormalizer made;
  if (!model.character_map.empty()) {
    SINTER_LET(map, CharacterMap::create(model.character_map));
    made.map_ = std::move(map);
  }
  made.user_defined_ = std::move(user_defined);
  made.dummy_prefix_ = model.add_dummy_prefix;
  made.trims_ = model.remove_extra_whitespaces;
  return made;
}

SentencePieceNormalizer::Step SentencePieceNormalizer::step(std::string_view text) const {
  if (const auto piece = user_defined_.longest_prefix(text))
    return {text.substr(0, piece->bytes), piece->bytes};
  if (map_)
    if (const auto match = map_->longest(text)) return {match->replacement, match->bytes};
  const size_t bytes = code_point_at(text, 0).bytes;
  return {text.substr(0, bytes), bytes};
}

Result<std::string> SentencePieceNormalizer::normalize(std::string_view text) const {
  const size_t given = text.size();
  while (trims_ && !text.empty()) {
    const Step first = step(text);
    if (first.text != " ") break;
    text.remove_prefix(first.bytes);
  }
  std::string normalized;
  if (text.empty()) return normalized;
  if (dummy_prefix_) normalized = space_mark;
  bool after_space = trims_;
  while (!text.empty()) {
    Step next = step(text);
    while (after_space && next.text.starts_with(' ')) next.text.remove_prefix(1);
    if (!next.text.empty()) {
      append_marked(normalized, next.text);
      SINTER_TRY(check_growth(given, normalized.size()));
      after_space = trims_ && next.text.ends_with(' ');
    }
    text.remove_prefix(next.bytes);
  }
  while (trims_ && normalized.ends_with(space_mark))
    normalized.resize(normalized.size() - space_mark.size());
  return normalized;
}

DecoderChain sentencepiece_decoder(const SentencePieceModel& model) {
  std::vector<DecoderStagePtr> stages;
  stages.push_back(std::make_unique<SentencePieceStage>(model));
  return DecoderChain(std::move(stages));
}

}  // namespace sinter
