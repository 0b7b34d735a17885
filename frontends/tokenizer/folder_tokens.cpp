#include "frontends/tokenizer/folder_tokens.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include "frontends/files/bounded_file.h"
#include "frontends/tokenizer/given_tokens.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kMap = "special_tokens_map.json";
constexpr const char* kAdded = "added_tokens.json";
constexpr std::string_view kDecoder = "added_tokens_decoder";
using TokensById = std::map<int64_t, Given>;

Result<TokensById> read_decoder(const JsonDocument& config) {
  TokensById tokens;
  const JsonView view = config.view()[kDecoder];
  SINTER_LET(members, view.object());
  for (const JsonMember& member : *members) {
    const JsonView place = view.at(member);
    int64_t id = -1;
    const char* end = member.key.data() + member.key.size();
    const auto parsed = std::from_chars(member.key.data(), end, id);
    if (parsed.ec != std::errc{} || parsed.ptr != end || id < 0 || id >= Vocabulary::max_ids)
      return place.fail(fmt::format("expected an id from 0 to {} as the key, got \"{}\"",
                                    Vocabulary::max_ids - 1, printable(member.key, 60)));
    SINTER_TRY(place.object());
    SINTER_LET(given, read_given(config.file, place, false));
    given.token.id = static_cast<int32_t>(id);
    if (!tokens.emplace(id, std::move(given)).second)
      return place.fail(fmt::format("the id {} stands here twice", id));
  }
  return tokens;
}

Result<TokensById> read_added(const JsonDocument& added, const GivenTokens& given,
                              const JsonView& tokenizer) {
  TokensById tokens;
  const std::set<std::string_view> specials = given.special_texts();
  SINTER_LET(members, added.view().object());
  for (const JsonMember& member : *members) {
    const JsonView place = added.view().at(member);
    SINTER_LET(id, place.integer(0, Vocabulary::max_ids - 1));
    const bool special = specials.contains(member.key);
    AddedToken token{static_cast<int32_t>(id), member.key, false, false, false, !special, special};
    tokens[id] = {std::move(token), false, fmt::format("{}: {}", added.file, place.pointer())};
  }
  const JsonView own = tokenizer["added_tokens"];
  if (!own.present()) return tokens;
  SINTER_LET(list, own.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(id, own[i]["id"].integer(0, Vocabulary::max_ids - 1));
    SINTER_LET(token, read_added_token(own[i]));
    tokens[id] = {std::move(token), false, fmt::format("tokenizer.json: {}", own[i].pointer())};
  }
  return tokens;
}

Status refuse_versions(const JsonView& config) {
  const JsonView files = config["fast_tokenizer_files"];
  if (!files.present()) return {};
  SINTER_LET(list, files.array());
  for (size_t i = 0; i < list->size(); ++i) {
    SINTER_LET(name, files[i].string());
    if (name != "tokenizer.json")
      return files[i].mismatch("tokenizer.json alone",
                               "keep the file of your version as tokenizer.json, and remove the "
                               "key");
  }
  return {};
}

}  // namespace

const std::string* FolderTokens::find_named(std::string_view key) const {
  for (const auto& [name, text] : named)
    if (name == key) return &text;
  return nullptr;
}

Result<JsonDocument> read_folder_json(const std::string& folder, const char* name) {
  const fs::path path = fs::path(folder) / name;
  if (!path_exists(path)) return JsonDocument{path.string(), JsonValue(JsonValue::Object{})};
  SINTER_LET(document, read_json(path.string()));
  SINTER_TRY(document.view().object());
  return std::move(document);
}

Result<FolderTokens> read_folder_tokens(const std::string& folder, const JsonView& tokenizer,
                                        std::span<const DefaultToken> defaults) {
  SINTER_LET(config, read_folder_json(folder, kConfig));
  SINTER_TRY(refuse_versions(config.view()));
  GivenTokens given;
  SINTER_TRY(given.read_config(config));
  TokensById by_id;
  if (config.view()[kDecoder].present()) {
    SINTER_LET(tokens, read_decoder(config));
    by_id = std::move(tokens);
  } else {
    SINTER_LET(map, read_folder_json(folder, kMap));
    SINTER_TRY(given.read_map(map));
    SINTER_LET(added, read_folder_json(folder, kAdded));
    SINTER_LET(tokens, read_added(added, given, tokenizer));
    by_id = std::move(tokens);
  }
  for (const auto& [key, text] : defaults) given.set_default(key, text, config.file);
  if (const JsonView pad = tokenizer["padding"]["pad_token"]; pad.present()) {
    SINTER_LET(text, pad.string());
    given.set_default("pad_token", text, pad.pointer());
  }

  std::vector<Given> adding;
  std::set<std::string, std::less<>> known, named_texts;
  for (auto& [id, token] : by_id) {
    known.insert(token.token.content);
    adding.push_back(std::move(token));
  }
  if (const JsonView own = tokenizer["added_tokens"]; own.present() && own.value()->array())
    for (size_t i = 0; i < own.value()->array()->size(); ++i)
      if (const JsonView content = own[i]["content"]; content.present()) {
        SINTER_LET(text, content.string());
        known.insert(std::move(text));
      }
  std::set<decltype(std::declval<Given>().key())> seen;
  const auto add = [&](const Given& token) {
    if (!known.contains(token.token.content) && seen.insert(token.key()).second)
      adding.push_back(token);
  };
  FolderTokens result;
  for (const auto& [key, token] : given.named()) {
    result.named.emplace_back(key, token.token.content);
    named_texts.insert(token.token.content);
    add(token);
  }
  for (const Given& token : given.extra()) add(token);
  for (Given& token : adding) {
    if (token.token.content.empty()) continue;
    if (named_texts.contains(token.token.content)) token.token.special = true;
    result.added.push_back({std::move(token.token), std::move(token.place)});
  }
  SINTER_LET(splits, config.view()["split_special_tokens"].boolean_or(false));
  SINTER_LET(cleans, config.view()["clean_up_tokenization_spaces"].boolean_or(false));
  SINTER_LET(
      cleans_pairs,
      config.view()["clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output"]
          .boolean_or(false));
  result.splits_special = splits;
  result.cleans_up = cleans;
  result.cleans_up_pairs = cleans && cleans_pairs;
  return result;
}

}  // namespace sinter
