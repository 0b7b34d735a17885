#include "frontends/tokenizer/folder_tokens.h"

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLExtras.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "tokenizer_config.json";
constexpr const char* kMap = "special_tokens_map.json";
constexpr const char* kAdded = "added_tokens.json";
constexpr std::string_view kDecoder = "added_tokens_decoder";
constexpr std::string_view kExtra = "extra_special_tokens";
constexpr std::string_view kAdditional = "additional_special_tokens";
// In the order in which transformers adds them.
constexpr std::string_view kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                       "pad_token", "cls_token", "mask_token"};

/// A token as a file gives it: a text, or an object with flags.
struct Given {
  AddedToken token;
  bool as_text = false;  // a text, or an object of special_tokens_map.json
  std::string place;

  /// Equal for tokens that transformers takes for one.
  auto key() const {
    return std::tuple(token.content, token.single_word, token.left_strip, token.right_strip,
                      token.normalized, token.special, as_text);
  }
};

Given special_text(std::string content, std::string place) {
  AddedToken token;
  token.content = std::move(content);
  token.normalized = false;
  token.special = true;
  return {std::move(token), true, std::move(place)};
}

Result<Given> read_given(const std::string& file, const JsonView& view, bool of_map) {
  std::string place = fmt::format("{}: {}", file, view.pointer());
  if (view.value()->object()) {
    SINTER_LET(token, read_added_token(view, of_map));
    return Given{std::move(token), of_map, std::move(place)};
  }
  SINTER_LET(text, view.string());
  if (text.size() > Vocabulary::longest_piece)
    return view.mismatch(fmt::format("at most {} bytes", Vocabulary::longest_piece));
  return special_text(std::move(text), std::move(place));
}

bool is_named_key(std::string_view key) { return key.ends_with("_token"); }

/// Tokens by key, in the order of their first appearance.
class NamedTokens {
 public:
  void set(std::string_view key, Given given) {
    for (auto& [name, value] : tokens_)
      if (name == key) {
        value = std::move(given);
        return;
      }
    tokens_.emplace_back(key, std::move(given));
  }
  const std::vector<std::pair<std::string, Given>>& tokens() const { return tokens_; }

 private:
  std::vector<std::pair<std::string, Given>> tokens_;
};

/// The keys of tokenizer_config.json and special_tokens_map.json, merged as transformers does it.
class GivenTokens {
 public:
  Status read_config(const JsonDocument& config) {
    SINTER_TRY(read_names(config, false));
    const JsonView own = config.view()[kExtra], older = config.view()[kAdditional];
    SINTER_TRY(read_list(config.file, own, false, extra_));
    const JsonValue::Object* members = own.present() ? own.value()->object() : nullptr;
    const bool counts = (extra_ && !extra_->empty()) || (members && !members->empty());
    return read_list(config.file, older, false, counts ? older_ : extra_);
  }

  Status read_map(const JsonDocument& map) {
    SINTER_TRY(read_names(map, true));
    const std::vector<Given> known = extra_.value_or(std::vector<Given>());
    const JsonView own = map.view()[kExtra];
    SINTER_TRY(read_list(map.file, own, true, extra_));
    if (own.present() && extra_) extra_->insert(extra_->begin(), known.begin(), known.end());
    return read_list(map.file, map.view()[kAdditional], true, older_);
  }

  /// A named token that no file gives.
  void set_default(std::string_view key, std::string_view text, const std::string& place) {
    if (text.empty() || !said_.insert(std::string(key)).second) return;
    *standard(key) = special_text(std::string(text), place);
  }

  /// Whether added_tokens.json takes a token for a special one.
  bool is_special(std::string_view content) const {
    const auto is = [&](const Given& given) {
      return given.as_text && given.token.content == content;
    };
    return llvm::any_of(standard_, [&](const auto& given) { return given && is(*given); }) ||
           (extra_ && llvm::any_of(*extra_, is));
  }

  std::vector<std::pair<std::string, Given>> named() const {
    auto standard = standard_;
    NamedTokens own = automatic_;
    for (const auto& [key, given] : explicit_.tokens())
      if (const auto place = standard_place(key))
        standard[*place] = given;
      else
        own.set(key, given);
    std::vector<std::pair<std::string, Given>> all;
    for (size_t i = 0; i < std::size(kNames); ++i)
      if (standard[i]) all.emplace_back(kNames[i], *standard[i]);
    all.insert(all.end(), own.tokens().begin(), own.tokens().end());
    return all;
  }
  std::vector<Given> extra() const {
    return (extra_ ? extra_ : older_).value_or(std::vector<Given>());
  }

 private:
  static std::optional<size_t> standard_place(std::string_view key) {
    const auto* at = llvm::find(kNames, key);
    if (at == std::end(kNames)) return std::nullopt;
    return static_cast<size_t>(at - kNames);
  }
  std::optional<Given>* standard(std::string_view key) {
    const auto place = standard_place(key);
    return place ? &standard_[*place] : nullptr;
  }

  Status read_names(const JsonDocument& document, bool of_map) {
    SINTER_LET(members, document.view().object());
    for (const JsonMember& member : *members) {
      if (!is_named_key(member.key)) continue;
      const JsonView view = document.view()[member.key];
      said_.insert(member.key);
      auto* slot = standard(member.key);
      if (!view.present()) {
        if (slot) slot->reset();
        continue;
      }
      // add_bos_token and others are no tokens.
      const bool object = view.value()->object(), marked = view["__type"].present();
      if (!slot && !view.value()->string() && !(object && (of_map || marked))) continue;
      // transformers refuses an object without the mark. One of special_tokens_map.json has none.
      SINTER_LET(given, read_given(document.file, view, of_map || (object && !marked)));
      if (slot)
        *slot = std::move(given);
      else
        (of_map || object ? automatic_ : explicit_).set(member.key, std::move(given));
    }
    return {};
  }

  /// Replaces `list` where a list stands, or null, which is an empty one. The members of an object
  /// are named tokens.
  Status read_list(const std::string& file, const JsonView& view, bool of_map,
                   std::optional<std::vector<Given>>& list) {
    if (!view.value()) return {};
    list.reset();
    if (const JsonValue::Object* members = view.value()->object()) {
      for (const JsonMember& member : *members) {
        SINTER_LET(given, read_given(file, view[member.key], false));
        explicit_.set(member.key, std::move(given));
      }
      return {};
    }
    list.emplace();
    if (!view.present()) return {};
    SINTER_LET(values, view.array());
    for (size_t i = 0; i < values->size(); ++i) {
      SINTER_LET(given, read_given(file, view[i], of_map));
      list->push_back(std::move(given));
    }
    return {};
  }

  std::array<std::optional<Given>, std::size(kNames)> standard_;
  // Other keys, and standard ones of an object; explicit_ replaces values of automatic_, whose
  // places come first.
  NamedTokens explicit_, automatic_;
  std::optional<std::vector<Given>> extra_;
  std::optional<std::vector<Given>> older_;  // counts where there is no other list
  std::set<std::string, std::less<>> said_;
};

using TokensById = std::map<int64_t, Given>;

Result<TokensById> read_decoder(const JsonDocument& config) {
  TokensById tokens;
  const JsonView view = config.view()[kDecoder];
  SINTER_LET(members, view.object());
  for (const JsonMember& member : *members) {
    const JsonView place = view[member.key];
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
  SINTER_LET(members, added.view().object());
  for (const JsonMember& member : *members) {
    const JsonView place = added.view()[member.key];
    SINTER_LET(id, place.integer(0, Vocabulary::max_ids - 1));
    const bool special = given.is_special(member.key);
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

Result<AddedToken> read_added_token(const JsonView& view, bool special_anyway) {
  SINTER_TRY(allow_keys(view, {"id", "content", "single_word", "lstrip", "rstrip", "normalized",
                               "special", "__type"}));
  SINTER_LET(content, view["content"].string());
  if (content.size() > Vocabulary::longest_piece)
    return view["content"].mismatch(fmt::format("at most {} bytes", Vocabulary::longest_piece));
  SINTER_LET(said_special, view["special"].boolean_or(false));
  const bool special = special_anyway || said_special;
  SINTER_LET(single_word, view["single_word"].boolean_or(false));
  SINTER_LET(left_strip, view["lstrip"].boolean_or(false));
  SINTER_LET(right_strip, view["rstrip"].boolean_or(false));
  SINTER_LET(normalized, view["normalized"].boolean_or(!special));
  return AddedToken{-1, content, single_word, left_strip, right_strip, normalized, special};
}

const std::string* FolderTokens::find_named(std::string_view key) const {
  for (const auto& [name, text] : named)
    if (name == key) return &text;
  return nullptr;
}

Result<JsonDocument> read_folder_json(const std::string& folder, const char* name) {
  const fs::path path = fs::path(folder) / name;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return JsonDocument{path.string(), JsonValue(JsonValue::Object{})};
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
