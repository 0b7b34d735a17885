// Unicode for the tokenizers: code points of UTF-8, the classes that pre-tokenizers split at, and
// normalization forms. Properties come from utf8proc. Texts are valid UTF-8 unless said otherwise.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sinter {

struct CodePoint {
  char32_t value;
  uint32_t bytes;  // of its UTF-8 form, 1 to 4
};

/// The code point that starts at byte `at` < text.size().
inline CodePoint code_point_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const auto tail = [&](size_t i) { return static_cast<char32_t>(byte(i) & 0x3f); };
  const char32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xe0) return {(lead & 0x1f) << 6 | tail(1), 2};
  if (lead < 0xf0) return {(lead & 0x0f) << 12 | tail(1) << 6 | tail(2), 3};
  return {(lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4};
}

/// Start of the code point that ends before byte `end` > 0.
inline size_t code_point_before(std::string_view text, size_t end) {
  do --end;
  while ((static_cast<unsigned char>(text[end]) & 0xc0) == 0x80);
  return end;
}

void append_utf8(std::string& text, char32_t c);

/// How much of `bytes`, which need not be UTF-8, is a whole well-formed code point (valid), can
/// never become one (invalid: shown as one U+FFFD), or only lacks its end (incomplete).
struct Utf8Prefix {
  enum class Kind { valid, invalid, incomplete } kind;
  size_t bytes;
};
Utf8Prefix utf8_prefix(std::string_view bytes);

/// Moves the decided front of `bytes` to `text`, ill-formed parts as U+FFFD; with `last` all of it.
void take_utf8(std::string& bytes, bool last, std::string& text);

// Properties as the reference tokenizers test them.
bool is_white_space(char32_t c);        // White_Space
bool is_numeric(char32_t c);            // N
bool is_punctuation(char32_t c);        // P
bool is_ascii_punctuation(char32_t c);  // printable ASCII but letters, digits and space
bool is_mark(char32_t c);               // M
bool is_nonspacing_mark(char32_t c);    // Mn
bool is_other(char32_t c);              // Cc, Cf, Co
bool is_word(char32_t c);               // Alphabetic, M, Nd, Pc, Join_Control
bool is_cjk_ideograph(char32_t c);      // the blocks that BERT sets apart
/// Appends the lower case of one code point, without regard to what stands around it.
void append_lower_case(std::string& text, char32_t c);

enum class NormalForm { nfc, nfd, nfkc, nfkd };
std::string normal_form(std::string_view text, NormalForm form);

/// End of the extended grapheme cluster that starts at byte `at`.
size_t grapheme_end(std::string_view text, size_t at);

}  // namespace sinter
