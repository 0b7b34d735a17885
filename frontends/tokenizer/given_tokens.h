// Tokens as tokenizer_config.json and special_tokens_map.json give them (folder_tokens.h).
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "frontends/tokenizer/folder_tokens.h"

namespace sinter {

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

/// `of_map`: the file is special_tokens_map.json, whose objects are special tokens.
Result<Given> read_given(const std::string& file, const JsonView& view, bool of_map);

/// Tokens by key, in the order of their first appearance.
class NamedTokens {
 public:
  void set(const std::string& key, Given given) {
    const auto [place, fresh] = places_.try_emplace(key, tokens_.size());
    if (fresh)
      tokens_.emplace_back(key, std::move(given));
    else
      tokens_[place->second].second = std::move(given);
  }
  const std::vector<std::pair<std::string, Given>>& tokens() const { return tokens_; }

 private:
  std::map<std::string, size_t> places_;
  std::vector<std::pair<std::string, Given>> tokens_;
};

/// The keys of tokenizer_config.json and special_tokens_map.json, merged as transformers does it.
class GivenTokens {
 public:
  Status read_config(const JsonDocument& config);

  Status read_map(const JsonDocument& map);

  /// A named token that no file gives.
  void set_default(std::string_view key, std::string_view text, const std::string& place);

  /// Texts of the tokens that added_tokens.json takes for special ones.
  std::set<std::string_view> special_texts() const;

  std::vector<std::pair<std::string, Given>> named() const;
  std::vector<Given> extra() const {
    return (extra_ ? extra_ : older_).value_or(std::vector<Given>());
  }

 private:
  // In the order in which transformers adds them.
  static constexpr std::array<std::string_view, 7> kNames = {
      "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

  static std::optional<size_t> standard_place(std::string_view key);
  std::optional<Given>* standard(std::string_view key);

  Status read_names(const JsonDocument& document, bool of_map);

  /// Replaces `list` where a list stands, or null, which is an empty one. The members of an object
  /// are named tokens.
  Status read_list(const std::string& file, const JsonView& view, bool of_map,
                   std::optional<std::vector<Given>>& list);

  std::array<std::optional<Given>, kNames.size()> standard_;
  // Other keys, and standard ones of an object; explicit_ replaces values of automatic_, whose
  // places come first.
  NamedTokens explicit_, automatic_;
  std::optional<std::vector<Given>> extra_;
  std::optional<std::vector<Given>> older_;  // counts where there is no other list
  std::set<std::string, std::less<>> said_;
};

}  // namespace sinter
