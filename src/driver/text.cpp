#include "driver/text.h"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "frontends/bounded_file.h"

namespace sinter {
namespace {

constexpr uint64_t kMostTextBytes = uint64_t{1} << 30;
constexpr const char* kTokenizerFiles[] = {"tokenizer.json", "tokenizer.model", "tokenizer.bin"};

std::filesystem::path folder_of(const std::string& model) {
  std::error_code error;
  const std::filesystem::path path(model);
  return std::filesystem::is_directory(path, error) ? path : path.parent_path();
}

}  // namespace

Result<std::vector<int32_t>> parse_tokens(std::string_view text, const std::string& where) {
  std::vector<int32_t> tokens;
  constexpr std::string_view kSeparators = ", \t\r\n";
  for (size_t at = text.find_first_not_of(kSeparators); at != text.npos; at = text.find_first_not_of(kSeparators, at)) {
    const size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    int32_t id = 0;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, id);
    if (error != std::errc() || rest != text.data() + end || id < 0)
      return fail(fmt::format("\"{}\" is no token id", printable(text.substr(at, end - at), 40)), where,
                  "write ids with commas between, e.g. 1,2,3");
    tokens.push_back(id);
    at = end;
  }
  if (tokens.empty()) return fail("no token ids", where, "write ids with commas between, e.g. 1,2,3");
  return tokens;
}

Result<std::vector<int32_t>> read_tokens(const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMostTextBytes));
  return parse_tokens(text, path);
}

Result<std::optional<Tokenizer>> find_tokenizer(const std::string& model) {
  const std::filesystem::path folder = folder_of(model);
  std::error_code error;
  for (const char* name : kTokenizerFiles) {
    if (!std::filesystem::exists(folder / name, error)) continue;
    SINTER_LET(tokenizer, Tokenizer::open((folder / name).string()));
    return std::optional<Tokenizer>(std::move(tokenizer));
  }
  return std::optional<Tokenizer>();
}

Result<std::vector<int32_t>> tokenize(const std::string& model, std::string_view text) {
  SINTER_LET(tokenizer, find_tokenizer(model));
  if (!tokenizer)
    return fail("the model has no tokenizer", folder_of(model).string(),
                "put tokenizer.json, tokenizer.model or tokenizer.bin beside it, or give --tokens");
  return tokenizer->encode(text, true);
}

Result<std::vector<int32_t>> read_text_tokens(const std::string& model, const std::string& path) {
  SINTER_LET(text, read_small_file(path, kMostTextBytes));
  return tokenize(model, text);
}

}  // namespace sinter
