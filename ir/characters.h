// Classes of ASCII characters, whatever the locale.
#pragma once

namespace sinter {

/// A letter or '_': what a name begins with.
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace sinter
