#include "driver/text.h"

#include <algorithm>
#include <filesystem>

#include "driver/integers.h"
#include "driver/stored_plan/stored_plan.h"
#include "driver/stored_plan/whole_plan.h"
#include "frontends/files/bounded_file.h"
#include "frontends/files/json.h"
#include "frontends/files/other_formats.h"
#include "frontends/gguf/gguf_path.h"
#include "frontends/gguf/gguf_tokenizer.h"
#include "frontends/load_model.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

}  // namespace

Result<std::vector<int32_t>> read_tokens(const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMaxTextBytes));
  return parse_integers<int32_t>(text, path, {.least = 0}, ExitCode::bad_input);
}

Status check_utf8(std::string_view text, const std::string& where) {
  if (is_utf8(text)) return {};
  size_t at = 0;
  Utf8Prefix next = utf8_prefix(text);
  for (; next.kind == Utf8Prefix::Kind::valid; next = utf8_prefix(text.substr(at)))
    at += next.bytes;
  return fail(fmt::format("byte {} is 0x{:02x}, which is not UTF-8 there", at,
                          static_cast<unsigned char>(text[at])),
              where, "convert the text to UTF-8");
}

Result<std::string> read_text(const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMaxTextBytes));
  SINTER_TRY(check_utf8(text, path));
  return std::move(text);
}

Result<std::string> model_files(const std::string& model) {
  std::error_code error;
  if (is_plan_folder(model))
    return read_whole_plan(model, [&] { return stored_model_files(model); });
  if (const auto file = gguf_model(model)) return *file;
  const std::filesystem::path path(model);
  if (std::filesystem::is_directory(path, error)) return model;
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

Result<std::optional<Tokenizer>> find_tokenizer(const std::string& model) {
  const std::filesystem::path path(model);
  std::error_code error;
  if (is_tokenizer_file_name(path.filename().string())) {
    SINTER_LET(tokenizer, Tokenizer::open(model));
    return std::optional<Tokenizer>(std::move(tokenizer));
  }
  SINTER_TRY(refuse_other_format(model));
  if (!std::filesystem::exists(path, error))
    return fail("no such file or folder", model, missing_model_hint(model));
  if (const auto file = gguf_model(model)) return open_gguf_tokenizer(*file);
  SINTER_LET(folder, model_files(model));
  const std::optional<std::string> file = find_tokenizer_file(folder);
  if (!file && std::filesystem::is_directory(path, error) && !is_plan_folder(model) &&
      !holds_model(model))
    return refuse_no_model(model);
  if (!file) return std::optional<Tokenizer>();
  SINTER_LET(tokenizer, Tokenizer::open(*file));
  return std::optional<Tokenizer>(std::move(tokenizer));
}

Result<Tokenizer> open_tokenizer(const std::string& model) {
  SINTER_LET(tokenizer, find_tokenizer(model));
  if (!tokenizer)
    return fail(
        "the model has no tokenizer", model,
        "put tokenizer.json, tokenizer.model, tokenizer.bin, or vocab.txt beside it, or give token "
        "ids");
  return std::move(*tokenizer);
}

Result<std::vector<int32_t>> tokenize(const std::string& model, std::string_view text) {
  SINTER_LET(tokenizer, open_tokenizer(model));
  return tokenizer.encode(text, true);
}

Result<std::vector<int32_t>> read_text_tokens(const std::string& model, const std::string& path) {
  SINTER_LET(text, read_text(path));
  return tokenize(model, text);
}

}  // namespace sinter
