// The names in regular expressions, from Oniguruma to PCRE2: escapes and Unicode properties.
#pragma once

#include <string>
#include <string_view>

namespace sinter {

/// The meaning of an escape with a letter, in PCRE2.
struct PatternEscape {
  char letter;
  std::string_view outside;  // of a class
  std::string_view inside;   // empty: not expressible there
};

/// Null for letters that are not known.
const PatternEscape* find_pattern_escape(char letter);

/// The name that \p{…} takes in PCRE2; a script unless it is known to be something else. PCRE2
/// refuses names that it does not know.
std::string pcre2_property(std::string_view name);

}  // namespace sinter
