#include "frontends/tokenizer/decoder.h"

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/text_growth.h"

namespace sinter {
namespace {

/// The stage for a null decoder: puts a space between tokens.
class SpacedStage final : public DecoderStage {
 public:
  DecoderStagePtr clone() const override { return std::make_unique<SpacedStage>(*this); }
  Status take(std::string_view part, bool ends, TokenSink sink) override {
    if (!first_) SINTER_TRY(sink(" ", false));
    first_ = false;
    return sink(part, ends);
  }

 private:
  bool first_ = true;
};

}  // namespace

DecoderChain::DecoderChain(const DecoderChain& other) {
  for (const DecoderStagePtr& stage : other.stages_) stages_.push_back(stage->clone());
  taken_ = other.taken_;
}

Status DecoderChain::feed(size_t stage, std::string_view part, bool ends, std::string& text) {
  if (stage == stages_.size()) {
    text += part;
    return {};
  }
  return stages_[stage]->take(part, ends, [&](std::string_view given, bool given_ends) {
    return pass_on(stage, given, given_ends, text);
  });
}

Status DecoderChain::pass_on(size_t stage, std::string_view part, bool ends, std::string& text) {
  SINTER_TRY(check_growth(taken_, part.size()));
  return feed(stage + 1, part, ends, text);
}

Status DecoderChain::finish(std::string& text) {
  for (size_t stage = 0; stage < stages_.size(); ++stage)
    SINTER_TRY(stages_[stage]->finish(
        [&](std::string_view part, bool ends) { return pass_on(stage, part, ends, text); }));
  return {};
}

Status WholeTokenStage::take(std::string_view part, bool ends, TokenSink sink) {
  if (token_.empty() && ends) return token(part, sink);
  token_ += part;
  if (!ends) return {};
  const std::string whole = std::move(token_);
  token_.clear();
  return token(whole, sink);
}

Result<DecoderChain> read_decoder(const JsonView& view) {
  constexpr ComponentKind<DecoderStagePtr> kinds[] = {
      {"ByteLevel", read_byte_level_decoder},
      {"ByteFallback", read_byte_fallback_decoder},
      {"Metaspace", read_metaspace_decoder},
      {"WordPiece", read_wordpiece_decoder},
      {"Replace", read_replace_decoder},
      {"Strip", read_strip_decoder},
      {"Fuse", read_fuse_decoder},
  };
  SINTER_LET(stages, read_stages<DecoderStagePtr>(view, "decoder", "decoders", kinds));
  if (!view.present()) stages.push_back(std::make_unique<SpacedStage>());
  return DecoderChain(std::move(stages));
}

}  // namespace sinter
