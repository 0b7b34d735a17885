#include "frontends/tokenizer/component.h"

#include <algorithm>

#include "frontends/tokenizer/text_growth.h"
#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

constexpr size_t longest_literal = 4096;  // bytes; a search costs at most text times literal

}  // namespace

Status allow_keys(const JsonView& view, std::initializer_list<std::string_view> keys) {
  SINTER_LET(members, view.object());
  for (const JsonMember& member : *members)
    if (member.key != "type" && std::find(keys.begin(), keys.end(), member.key) == keys.end())
      return view[member.key].fail("a setting that is not supported here",
                                   "use a tokenizer without it");
  return {};
}

Result<std::string> read_character(const JsonView& view) {
  SINTER_LET(text, view.string());
  if (text.empty() || code_point_at(text, 0).bytes != text.size())
    return view.mismatch("one character");
  return text;
}

Result<TextPattern> TextPattern::read(const JsonView& view) {
  SINTER_LET(members, view.object());
  TextPattern pattern;
  if (members->size() == 1 && members->front().key == "String") {
    SINTER_LET(literal, view["String"].string());
    if (literal.empty() || literal.size() > longest_literal)
      return view["String"].mismatch(fmt::format("a string of 1 to {} bytes", longest_literal));
    pattern.literal_ = literal;
    return pattern;
  }
  if (members->size() == 1 && members->front().key == "Regex") {
    SINTER_LET(text, view["Regex"].string());
    auto regex = Regex::compile(text);
    if (!regex) return view["Regex"].fail(regex.error().what, "use a tokenizer without it");
    pattern.regex_ = std::move(*regex);
    return pattern;
  }
  return view.mismatch("an object with the one key String or Regex");
}

TextPattern TextPattern::regex(std::string_view pattern) {
  auto compiled = Regex::compile(pattern);
  SINTER_CHECK(compiled, "{}", compiled.error().what);
  TextPattern made;
  made.regex_ = std::move(*compiled);
  return made;
}

TextPattern TextPattern::text(std::string_view literal) {
  TextPattern made;
  made.literal_ = literal;
  return made;
}

Result<std::vector<TextRange>> TextPattern::matches(std::string_view text) const {
  std::vector<TextRange> found;
  if (literal_) {
    for (size_t at = text.find(*literal_); at != text.npos;
         at = text.find(*literal_, at + literal_->size()))
      found.push_back({at, at + literal_->size()});
    return found;
  }
  Regex::Matches matches(*regex_, text);
  for (;;) {
    SINTER_LET(match, matches.next());
    if (!match) return found;
    found.push_back(*match);
  }
}

Result<std::string> replace_all(std::string_view text, const TextPattern& pattern,
                                std::string_view content) {
  SINTER_LET(found, pattern.matches(text));
  std::string result;
  size_t done = 0;
  for (const TextRange& match : found) {
    result += text.substr(done, match.begin - done);
    result += content;
    SINTER_TRY(check_growth(text.size(), result.size()));
    done = match.end;
  }
  result += text.substr(done);
  return result;
}

Result<PrependScheme> read_prepend_scheme(const JsonView& view) {
  SINTER_LET(prefix_space, view["add_prefix_space"].boolean_or(true));
  SINTER_LET(name, view["prepend_scheme"].string_or(prefix_space ? "always" : "never"));
  if (!prefix_space && name != "never")
    return view["add_prefix_space"].fail(fmt::format(
        "expected true with the prepend_scheme \"{}\", got false", printable(name, 60)));
  if (name == "always") return PrependScheme::always;
  if (name == "first") return PrependScheme::first;
  if (name == "never") return PrependScheme::never;
  return view["prepend_scheme"].mismatch("always, first or never");
}

}  // namespace sinter
