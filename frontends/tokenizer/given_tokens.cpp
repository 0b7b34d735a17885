#include "frontends/tokenizer/given_tokens.h"

#include <llvm/ADT/STLExtras.h>

#include "frontends/tokenizer/component.h"
#include "frontends/tokenizer/vocabulary.h"

namespace sinter {
namespace {

constexpr std::string_view kExtra = "extra_special_tokens";
constexpr std::string_view kAdditional = "additional_special_tokens";

Given special_text(std::string content, std::string place) {
  AddedToken token;
  token.content = std::move(content);
  token.normalized = false;
  token.special = true;
  return {std::move(token), true, std::move(place)};
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

std::optional<size_t> GivenTokens::standard_place(std::string_view key) {
  const auto* at = llvm::find(kNames, key);
  if (at == kNames.end()) return std::nullopt;
  return static_cast<size_t>(at - kNames.begin());
}

Status GivenTokens::read_config(const JsonDocument& config) {
  SINTER_TRY(read_names(config, false));
  const JsonView own = config.view()[kExtra], older = config.view()[kAdditional];
  SINTER_TRY(read_list(config.file, own, false, extra_));
  const JsonValue::Object* members = own.present() ? own.value()->object() : nullptr;
  const bool counts = (extra_ && !extra_->empty()) || (members && !members->empty());
  return read_list(config.file, older, false, counts ? older_ : extra_);
}

Status GivenTokens::read_map(const JsonDocument& map) {
  SINTER_TRY(read_names(map, true));
  const std::vector<Given> known = extra_.value_or(std::vector<Given>());
  const JsonView own = map.view()[kExtra];
  SINTER_TRY(read_list(map.file, own, true, extra_));
  if (own.present() && extra_) extra_->insert(extra_->begin(), known.begin(), known.end());
  return read_list(map.file, map.view()[kAdditional], true, older_);
}

void GivenTokens::set_default(std::string_view key, std::string_view text,
                              const std::string& place) {
  if (text.empty() || !said_.insert(std::string(key)).second) return;
  *standard(key) = special_text(std::string(text), place);
}

std::set<std::string_view> GivenTokens::special_texts() const {
  std::set<std::string_view> texts;
  const auto add = [&](const Given& given) {
    if (given.as_text) texts.insert(given.token.content);
  };
  for (const std::optional<Given>& given : standard_)
    if (given) add(*given);
  for (const Given& given : extra_ ? *extra_ : std::vector<Given>()) add(given);
  return texts;
}

std::vector<std::pair<std::string, Given>> GivenTokens::named() const {
  auto standard = standard_;
  NamedTokens own = automatic_;
  for (const auto& [key, given] : explicit_.tokens())
    if (const auto place = standard_place(key))
      standard[*place] = given;
    else
      own.set(key, given);
  std::vector<std::pair<std::string, Given>> all;
  for (size_t i = 0; i < kNames.size(); ++i)
    if (standard[i]) all.emplace_back(kNames[i], *standard[i]);
  all.insert(all.end(), own.tokens().begin(), own.tokens().end());
  return all;
}

Status GivenTokens::read_names(const JsonDocument& document, bool of_map) {
  SINTER_LET(members, document.view().object());
  for (const JsonMember& member : *members) {
    if (!std::string_view(member.key).ends_with("_token")) continue;
    const JsonView view = document.view().at(member);
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

Status GivenTokens::read_list(const std::string& file, const JsonView& view, bool of_map,
                              std::optional<std::vector<Given>>& list) {
  if (!view.value()) return {};
  list.reset();
  if (const JsonValue::Object* members = view.value()->object()) {
    for (const JsonMember& member : *members) {
      SINTER_LET(given, read_given(file, view.at(member), false));
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

std::optional<Given>* GivenTokens::standard(std::string_view key) {
  const auto place = standard_place(key);
  return place ? &standard_[*place] : nullptr;
}

}  // namespace sinter
