// The decoder types Replace and Strip: rewriting within a token, which after a Fuse is the whole
// text; so both give on what later parts cannot change.
#include <algorithm>

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/decoder.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

class ReplaceStage final : public DecoderStage {
 public:
  ReplaceStage(TextPattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  DecoderStagePtr clone() const override { return std::make_unique<ReplaceStage>(*this); }

  Status take(std::string_view part, bool ends, TokenSink sink) override {
    waiting_ += part;
    size_t certain = waiting_.size();
    if (!ends) {
      if (!pattern_.literal()) return {};  // what a regular expression matches may yet change
      certain = without_started_match();
    }
    SINTER_LET(replaced, replace_all(waiting_.substr(0, certain), pattern_, content_));
    waiting_.erase(0, certain);
    return sink(replaced, ends);
  }

 private:
  /// Bytes of waiting_ before what may be the start of the literal.
  size_t without_started_match() const {
    const std::string& literal = *pattern_.literal();
    size_t done = 0;
    for (size_t at; (at = waiting_.find(literal, done)) != waiting_.npos;)
      done = at + literal.size();
    const size_t longest = std::min(literal.size() - 1, waiting_.size() - done);
    for (size_t bytes = longest; bytes > 0; --bytes)
      if (waiting_.ends_with(std::string_view(literal).substr(0, bytes)))
        return waiting_.size() - bytes;
    return waiting_.size();
  }

  TextPattern pattern_;
  std::string content_;
  std::string waiting_;
};

/// Takes up to `start` and `stop` copies of a character from the ends of each token.
class StripStage final : public DecoderStage {
 public:
  StripStage(std::string character, size_t start, size_t stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  DecoderStagePtr clone() const override { return std::make_unique<StripStage>(*this); }

  Status take(std::string_view part, bool ends, TokenSink sink) override {
    std::string text;
    while (at_start_ && stripped_ < start_ && part.starts_with(character_)) {
      part.remove_prefix(character_.size());
      ++stripped_;
    }
    if (!part.empty()) at_start_ = false;
    // Copies at the end wait: they go if the token ends here.
    size_t end = part.size();
    size_t copies = 0;
    while (part.substr(0, end).ends_with(character_)) {
      end -= character_.size();
      ++copies;
    }
    if (end > 0) give_waiting(waiting_, text);
    text += part.substr(0, end);
    waiting_ += copies;
    if (waiting_ > stop_) give_waiting(waiting_ - stop_, text);
    if (ends) {
      waiting_ = stripped_ = 0;
      at_start_ = true;
    }
    return text.empty() && !ends ? Status{} : sink(text, ends);
  }

 private:
  void give_waiting(size_t copies, std::string& text) {
    for (size_t i = 0; i < copies; ++i) text += character_;
    waiting_ -= copies;
  }

  std::string character_;
  size_t start_, stop_;
  bool at_start_ = true;
  size_t stripped_ = 0;  // at the token's start
  size_t waiting_ = 0;   // copies at the end of what came so far
};

}  // namespace

Result<DecoderStagePtr> read_replace_decoder(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"pattern", "content"}));
  SINTER_LET(pattern, TextPattern::read(view["pattern"]));
  SINTER_LET(content, view["content"].string());
  return std::make_unique<ReplaceStage>(std::move(pattern), content);
}

void add_cleaning(DecoderChain& chain) {
  chain.append(fuse_stage());
  constexpr std::pair<const char*, const char*> kReplaced[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [before, after] : kReplaced)
    chain.append(std::make_unique<ReplaceStage>(TextPattern::text(before), after));
}

Result<DecoderStagePtr> read_strip_decoder(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"content", "start", "stop"}));
  SINTER_LET(character, read_character(view["content"]));
  SINTER_LET(start, view["start"].integer(0));
  SINTER_LET(stop, view["stop"].integer(0));
  return std::make_unique<StripStage>(character, static_cast<size_t>(start),
                                      static_cast<size_t>(stop));
}

}  // namespace sinter
