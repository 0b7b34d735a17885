// Decoders: stages that turn tokens back into text, one token at a time, so that whole texts and
// streams take the same way.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/files/json.h"

namespace sinter {

/// Takes the parts of a token in order; the last part of it has `ends` set. Parts are UTF-8.
using TokenSink = llvm::function_ref<Status(std::string_view part, bool ends)>;

/// One stage with its state. A stage gives on what is certain, whatever follows.
class DecoderStage {
 public:
  virtual ~DecoderStage() = default;
  /// A stage of the same kind in the state that it has now.
  virtual std::unique_ptr<DecoderStage> clone() const = 0;
  virtual Status take(std::string_view part, bool ends, TokenSink sink) = 0;
  /// No token follows.
  virtual Status finish(TokenSink) { return {}; }
};

using DecoderStagePtr = std::unique_ptr<DecoderStage>;

/// The stages of a decoder, one after the other. A copy starts in the same state.
class DecoderChain {
 public:
  DecoderChain() = default;
  explicit DecoderChain(std::vector<DecoderStagePtr> stages) : stages_(std::move(stages)) {}
  DecoderChain(const DecoderChain& other);
  DecoderChain(DecoderChain&&) = default;
  DecoderChain& operator=(DecoderChain&&) = default;

  void append(DecoderStagePtr stage) { stages_.push_back(std::move(stage)); }
  /// Takes a token; appends what is certain now to `text`.
  Status push(std::string_view token, std::string& text) {
    taken_ += token.size();
    return feed(0, token, true, text);
  }
  /// Appends the rest.
  Status finish(std::string& text);

 private:
  Status feed(size_t stage, std::string_view part, bool ends, std::string& text);
  /// Passes a part from `stage` to the next one. Refuses a part that is too long (text_growth.h).
  Status pass_on(size_t stage, std::string_view part, bool ends, std::string& text);

  std::vector<DecoderStagePtr> stages_;
  size_t taken_ = 0;  // bytes of all tokens so far
};

/// The "decoder" of a tokenizer.json; null puts spaces between tokens.
Result<DecoderChain> read_decoder(const JsonView& view);

/// Takes away the spaces before punctuation and the parts of English contractions, in the whole
/// text: clean_up_tokenization_spaces of transformers.
void add_cleaning(DecoderChain& chain);

/// Gives whole tokens to `token`, in place of parts.
class WholeTokenStage : public DecoderStage {
 public:
  Status take(std::string_view part, bool ends, TokenSink sink) final;

 protected:
  virtual Status token(std::string_view token, TokenSink sink) = 0;

 private:
  std::string token_;  // so far
};

// The stages, by the types of tokenizer.json; in their own files.
Result<DecoderStagePtr> read_byte_level_decoder(const JsonView& view);
Result<DecoderStagePtr> read_byte_fallback_decoder(const JsonView& view);
Result<DecoderStagePtr> read_metaspace_decoder(const JsonView& view);
Result<DecoderStagePtr> read_wordpiece_decoder(const JsonView& view);
Result<DecoderStagePtr> read_replace_decoder(const JsonView& view);
Result<DecoderStagePtr> read_strip_decoder(const JsonView& view);
Result<DecoderStagePtr> read_fuse_decoder(const JsonView& view);
/// Makes one token of all.
DecoderStagePtr fuse_stage();

/// The byte that a piece like <0x0A> stands for.
std::optional<uint8_t> byte_of_piece(std::string_view piece);

}  // namespace sinter
