// Helpers for the readers of a tokenizer.json: they choose a reader by the component's type and
// refuse unknown input.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "frontends/files/json.h"
#include "frontends/tokenizer/regex.h"

namespace sinter {

/// Fails if the object at `view` has a member beside "type" and `keys`.
Status allow_keys(const JsonView& view, std::initializer_list<std::string_view> keys);

/// The one code point that the string at `view` is.
Result<std::string> read_character(const JsonView& view);

/// The pattern of a component: {"String": …}, matched literally, or {"Regex": …}.
class TextPattern {
 public:
  static Result<TextPattern> read(const JsonView& view);
  /// A regular expression of Sinter's own.
  static TextPattern regex(std::string_view pattern);
  /// A text that is not empty, matched literally.
  static TextPattern text(std::string_view literal);

  /// The matches in `text` from left to right, not overlapping, perhaps empty.
  Result<std::vector<TextRange>> matches(std::string_view text) const;
  /// The string that is looked for; nothing for a regular expression.
  const std::optional<std::string>& literal() const { return literal_; }

 private:
  std::optional<std::string> literal_;
  std::optional<Regex> regex_;
};

/// `text` with every match of `pattern` replaced; an error if it grows too much (text_growth.h).
Result<std::string> replace_all(std::string_view text, const TextPattern& pattern,
                                std::string_view content);

/// Whether Metaspace puts its mark before a word that has none: before all, before the one that
/// starts the text, or before none. Files of the first versions say add_prefix_space.
enum class PrependScheme { always, first, never };
Result<PrependScheme> read_prepend_scheme(const JsonView& view);

/// A component's type and how to read it.
template <typename T>
struct ComponentKind {
  std::string_view type;
  Result<T> (*read)(const JsonView& view);
};

/// The stages that the component at `view` stands for: none for null, its parts' stages for a
/// Sequence, else one. `parts` is the key of a Sequence's list.
template <typename T>
Result<std::vector<T>> read_stages(const JsonView& view, std::string_view what,
                                   std::string_view parts,
                                   std::span<const ComponentKind<T>> kinds) {
  std::vector<T> stages;
  SINTER_TRY(add_stages(stages, view, what, parts, kinds));
  return stages;
}

inline constexpr size_t max_stages = 64;  // of one kind in a tokenizer

template <typename T>
Status add_stages(std::vector<T>& stages, const JsonView& view, std::string_view what,
                  std::string_view parts, std::span<const ComponentKind<T>> kinds) {
  if (!view.present()) return {};
  SINTER_LET(type, view["type"].string());
  if (type == "Sequence") {
    SINTER_TRY(allow_keys(view, {parts}));
    SINTER_LET(list, view[parts].array());
    for (size_t i = 0; i < list->size(); ++i)  // the depth of a document is bounded
      SINTER_TRY(add_stages(stages, view[parts][i], what, parts, kinds));
    return {};
  }
  if (stages.size() == max_stages)
    return view.fail(fmt::format("more than {} components of one kind", max_stages));
  for (const ComponentKind<T>& kind : kinds) {
    if (kind.type != type) continue;
    SINTER_LET(stage, kind.read(view));
    stages.push_back(std::move(stage));
    return {};
  }
  return view["type"].fail(fmt::format("unknown {} \"{}\"", what, printable(type, 60)),
                           "use a tokenizer without it");
}

}  // namespace sinter
