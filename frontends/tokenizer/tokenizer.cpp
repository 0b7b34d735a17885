#include "frontends/tokenizer/tokenizer.h"

#include <llvm/ADT/STLExtras.h>

#include <filesystem>

#include "frontends/files/bounded_file.h"
#include "frontends/tokenizer/format.h"

namespace sinter {
namespace {

struct FormatReader {
  std::string_view file;       // its usual name
  std::string_view extension;  // of files with other names; empty: there are none
  Result<TokenizerFormatPtr> (*open)(const std::string& path);
};
// In the order in which a folder's files are looked for.
constexpr FormatReader readers[] = {
    {"tokenizer.json", ".json", open_tokenizer_json},
    {"tokenizer.model", ".model", open_tokenizer_sentencepiece},
    {"tokenizer.bin", ".bin", open_tokenizer_llama2c},
    {"vocab.txt", "", open_tokenizer_vocab_txt},
    {"vocab.json", "", open_tokenizer_vocab_json},
};

const FormatReader* find_reader(const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (const FormatReader& reader : readers)
    if (reader.file == name) return &reader;
  for (const FormatReader& reader : readers)
    if (!reader.extension.empty() && path.ends_with(reader.extension)) return &reader;
  return nullptr;
}

}  // namespace

std::optional<std::string> find_tokenizer_file(const std::string& folder) {
  for (const FormatReader& reader : readers) {
    const auto file = std::filesystem::path(folder) / reader.file;
    if (path_exists(file)) return file.string();
  }
  return std::nullopt;
}

bool is_tokenizer_file_name(std::string_view name) {
  return llvm::any_of(readers, [&](const FormatReader& reader) { return reader.file == name; });
}

Result<Tokenizer> Tokenizer::open(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    if (const auto file = find_tokenizer_file(path)) return open(*file);
    return fail(
        "the folder has no tokenizer.json, tokenizer.model, tokenizer.bin, vocab.txt or vocab.json",
        path, "give token ids, or name a tokenizer file");
  }
  if (const FormatReader* reader = find_reader(path)) {
    SINTER_LET(format, reader->open(path));
    return Tokenizer(std::move(format));
  }
  return fail(
      "expected a tokenizer file that ends in .json, .model or .bin, a vocab.txt, or a folder",
      path, "check the path");
}

Result<Tokenizer> Tokenizer::read(const JsonView& json) {
  SINTER_LET(format, read_tokenizer_json(json, {}));
  return Tokenizer(std::move(format));
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool add_special) const {
  if (!is_utf8(text)) return fail("the text is not UTF-8", {}, "convert it to UTF-8");
  return format_->encode(text, add_special);
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> ids, bool skip_special) const {
  TextStream stream(*this, skip_special);
  std::string text;
  for (int32_t id : ids) {
    if (!format_->piece(id))
      return fail(fmt::format("the id {} is not in the tokenizer's vocabulary of {}", id,
                              vocabulary_size()),
                  {}, "use the tokenizer of this model");
    SINTER_LET(part, stream.push(id));
    text += part;
  }
  SINTER_LET(rest, stream.finish());
  return text + rest;
}

int32_t Tokenizer::vocabulary_size() const { return format_->vocabulary_size(); }

std::optional<int32_t> Tokenizer::token_id(std::string_view piece) const {
  return format_->token_id(piece);
}

std::optional<std::string> Tokenizer::piece(int32_t id) const {
  const auto piece = format_->piece(id);
  if (!piece) return std::nullopt;
  return std::string(*piece);
}

bool Tokenizer::is_special(int32_t id) const { return format_->is_special(id); }

struct TextStream::State {
  TokenizerFormatPtr format;
  DecoderChain decoder;
  bool skip_special;
};

TextStream::TextStream(const Tokenizer& tokenizer, bool skip_special)
    : state_(new State{tokenizer.format_, tokenizer.format_->decoder(), skip_special}) {}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

Result<std::string> TextStream::push(int32_t id) {
  constexpr std::string_view replacement = "\xef\xbf\xbd";
  std::string text;
  if (state_->skip_special && state_->format->is_special(id)) return text;
  SINTER_TRY(state_->decoder.push(state_->format->piece(id).value_or(replacement), text));
  return text;
}

Result<std::string> TextStream::finish() {
  std::string text;
  SINTER_TRY(state_->decoder.finish(text));
  return text;
}

}  // namespace sinter
