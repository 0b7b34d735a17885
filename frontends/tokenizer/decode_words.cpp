// The decoder types Metaspace, WordPiece and Fuse: what stands between words.
#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/decoder.h"

namespace sinter {
namespace {

/// Marks become spaces; the first token's marks are dropped if encoding has added one there.
class MetaspaceStage final : public WholeTokenStage {
 public:
  MetaspaceStage(std::string mark, bool drops_first)
      : mark_(std::move(mark)), drops_(drops_first) {}
  DecoderStagePtr clone() const override { return std::make_unique<MetaspaceStage>(*this); }

 protected:
  Status token(std::string_view token, TokenSink sink) override {
    std::string text;
    size_t done = 0;
    for (size_t at; (at = token.find(mark_, done)) != token.npos; done = at + mark_.size()) {
      text += token.substr(done, at - done);
      if (!drops_) text += ' ';
    }
    text += token.substr(done);
    drops_ = false;
    return sink(text, true);
  }

 private:
  std::string mark_;
  bool drops_;
};

struct Spelling {
  std::string_view from, to;
};
// How BERT's decoder tidies a token with its space, in this order.
constexpr Spelling spellings[] = {{" .", "."},     {" ?", "?"},           {" !", "!"},
                                  {" ,", ","},     {" ' ", "'"},          {" n't", "n't"},
                                  {" 'm", "'m"},   {" do not", " don't"}, {" 's", "'s"},
                                  {" 've", "'ve"}, {" 're", "'re"}};

/// Tokens get a space before them, but those that go on with a word, which lose their prefix.
class WordPieceStage final : public WholeTokenStage {
 public:
  WordPieceStage(std::string prefix, bool tidy) : prefix_(std::move(prefix)), tidy_(tidy) {}
  DecoderStagePtr clone() const override { return std::make_unique<WordPieceStage>(*this); }

 protected:
  Status token(std::string_view token, TokenSink sink) override {
    std::string text(token);
    if (!first_) {
      if (text.starts_with(prefix_))
        text.erase(0, prefix_.size());
      else
        text.insert(0, " ");
    }
    first_ = false;
    if (tidy_)
      for (const Spelling& spelling : spellings) replace(text, spelling);
    return sink(text, true);
  }

 private:
  static void replace(std::string& text, const Spelling& spelling) {
    for (size_t at = 0; (at = text.find(spelling.from, at)) != text.npos; at += spelling.to.size())
      text.replace(at, spelling.from.size(), spelling.to);
  }

  std::string prefix_;
  bool tidy_;
  bool first_ = true;
};

/// All tokens are one.
class FuseStage final : public DecoderStage {
 public:
  DecoderStagePtr clone() const override { return std::make_unique<FuseStage>(*this); }
  Status take(std::string_view part, bool, TokenSink sink) override { return sink(part, false); }
  Status finish(TokenSink sink) override { return sink("", true); }
};

}  // namespace

Result<DecoderStagePtr> read_metaspace_decoder(const JsonView& view) {
  SINTER_TRY(
      allow_keys(view, {"replacement", "prepend_scheme", "add_prefix_space", "split", "str_rep"}));
  SINTER_LET(mark, read_character(view["replacement"]));
  SINTER_LET(scheme, read_prepend_scheme(view));
  return std::make_unique<MetaspaceStage>(mark, scheme != PrependScheme::never);
}

Result<DecoderStagePtr> read_wordpiece_decoder(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"prefix", "cleanup"}));
  SINTER_LET(prefix, view["prefix"].string_or("##"));
  SINTER_LET(tidy, view["cleanup"].boolean_or(true));
  return std::make_unique<WordPieceStage>(prefix, tidy);
}

Result<DecoderStagePtr> read_fuse_decoder(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return fuse_stage();
}

DecoderStagePtr fuse_stage() { return std::make_unique<FuseStage>(); }

}  // namespace sinter
