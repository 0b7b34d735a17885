#include "frontends/tokenizer/pattern_names.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter {
namespace {

// Oniguruma's \w: outside a class it takes some of Latin-1's numbers too.
#define SINTER_WORD_CLASS R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})"
#define SINTER_WORD R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})" SINTER_WORD_CLASS
#define SINTER_BETWEEN(before, after) "(?<" before "[" SINTER_WORD "])(?" after "[" SINTER_WORD "])"

constexpr PatternEscape escapes[] = {
    {'w', "[" SINTER_WORD "]", SINTER_WORD_CLASS},
    {'W', "[^" SINTER_WORD "]", ""},
    {'b', "(?:" SINTER_BETWEEN("=", "!") "|" SINTER_BETWEEN("!", "=") ")", "\\x{8}"},
    {'B', "(?:" SINTER_BETWEEN("=", "=") "|" SINTER_BETWEEN("!", "!") ")", ""},
    {'s', "\\p{White_Space}", "\\p{White_Space}"},
    {'S', "\\P{White_Space}", "\\P{White_Space}"},
    {'d', "\\p{Nd}", "\\p{Nd}"},
    {'D', "\\P{Nd}", "\\P{Nd}"},
    {'h', "\\p{ASCII_Hex_Digit}", "\\p{ASCII_Hex_Digit}"},
    {'H', "\\P{ASCII_Hex_Digit}", "\\P{ASCII_Hex_Digit}"},
    {'v', "\\x{b}", "\\x{b}"},
    {'t', "\\t", "\\t"},
    {'n', "\\n", "\\n"},
    {'r', "\\r", "\\r"},
    {'f', "\\f", "\\f"},
    {'a', "\\a", "\\a"},
    {'e', "\\e", "\\e"},
    {'A', "\\A", ""},
    {'z', "\\z", ""},
    {'Z', "\\Z", ""},
};

struct PropertyName {
  std::string_view from, to;
};
constexpr PropertyName properties[] = {
    {"Letter", "L"},          {"Mark", "M"},
    {"Number", "N"},          {"Punctuation", "P"},
    {"Punct", "P"},           {"Symbol", "S"},
    {"Separator", "Z"},       {"Other", "C"},
    {"Digit", "Nd"},          {"Alpha", "Alphabetic"},
    {"Space", "White_Space"}, {"Upper", "Uppercase"},
    {"Lower", "Lowercase"},
};
constexpr std::string_view same_names =
    " C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So "
    "Z Zl Zp Zs Any ASCII Alphabetic White_Space Uppercase Lowercase Ideographic Emoji "
    "Emoji_Presentation Emoji_Modifier Emoji_Modifier_Base Emoji_Component Extended_Pictographic ";

}  // namespace

const PatternEscape* find_pattern_escape(char letter) {
  const auto at = std::find_if(std::begin(escapes), std::end(escapes),
                               [&](const PatternEscape& row) { return row.letter == letter; });
  return at == std::end(escapes) ? nullptr : at;
}

std::string pcre2_property(std::string_view name) {
  for (const PropertyName& row : properties)
    if (row.from == name) return std::string(row.to);
  if (same_names.find(fmt::format(" {} ", name)) != same_names.npos) return std::string(name);
  // PCRE2 takes a bare script name for Script_Extensions, Oniguruma for Script.
  return fmt::format("sc:{}", name);
}

}  // namespace sinter
