// The decoder types ByteLevel and ByteFallback: tokens that write bytes.
#include "frontends/tokenizer/byte_level.h"
#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/decoder.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

/// All tokens become one, whose bytes the tokens write; what is not UTF-8 becomes U+FFFD.
class ByteLevelStage final : public WholeTokenStage {
 public:
  DecoderStagePtr clone() const override { return std::make_unique<ByteLevelStage>(*this); }
  Status finish(TokenSink sink) override { return give(true, sink); }

 protected:
  Status token(std::string_view token, TokenSink sink) override {
    const auto bytes = bytes_of_byte_level(token);
    pending_ += bytes ? std::string_view(*bytes) : token;
    return give(false, sink);
  }

 private:
  Status give(bool last, TokenSink sink) {
    std::string text;
    take_utf8(pending_, last, text);
    return text.empty() && !last ? Status{} : sink(text, last);
  }

  std::string pending_;  // the start of a character
};

/// A row of byte tokens becomes one token if it is UTF-8, else U+FFFD for each byte. Which one, is
/// only known at the row's end.
class ByteFallbackStage final : public WholeTokenStage {
 public:
  DecoderStagePtr clone() const override { return std::make_unique<ByteFallbackStage>(*this); }
  Status finish(TokenSink sink) override { return give_row(sink); }

 protected:
  Status token(std::string_view token, TokenSink sink) override {
    if (const auto byte = byte_of_piece(token)) {
      row_ += static_cast<char>(*byte);
      return {};
    }
    SINTER_TRY(give_row(sink));
    return sink(token, true);
  }

 private:
  Status give_row(TokenSink sink) {
    if (row_.empty()) return {};
    const std::string row = std::move(row_);
    row_.clear();
    if (is_utf8(row)) return sink(row, true);
    for (size_t i = 0; i < row.size(); ++i) SINTER_TRY(sink("\xef\xbf\xbd", true));
    return {};
  }

  std::string row_;
};

std::optional<uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

}  // namespace

std::optional<uint8_t> byte_of_piece(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return std::nullopt;
  const auto high = hex_digit(piece[3]), low = hex_digit(piece[4]);
  if (!high || !low) return std::nullopt;
  return static_cast<uint8_t>(*high << 4 | *low);
}

Result<DecoderStagePtr> read_byte_level_decoder(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {"add_prefix_space", "trim_offsets", "use_regex"}));
  return std::make_unique<ByteLevelStage>();
}

Result<DecoderStagePtr> read_byte_fallback_decoder(const JsonView& view) {
  SINTER_TRY(allow_keys(view, {}));
  return std::make_unique<ByteFallbackStage>();
}

}  // namespace sinter
