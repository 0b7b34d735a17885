#include "frontends/tokenizer/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "ir/error.h"

namespace sinter {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

std::vector<utf8proc_int32_t> decompose(std::string_view text, bool compatible) {
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                      (compatible ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> points;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.bytes;
    utf8proc_int32_t parts[32];  // the longest decomposition has 18
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.value), parts,
                                               std::size(parts), options, nullptr);
    SINTER_CHECK(count >= 0 && count <= std::ssize(parts), "U+{:04X}", uint32_t(c.value));
    points.insert(points.end(), parts, parts + count);
  }
  return points;
}

/// Sorts each run of marks by combining class. utf8proc does it too, in quadratic time.
void order_marks(std::vector<utf8proc_int32_t>& points) {
  const auto order = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  for (auto at = points.begin(); at != points.end();) {
    if (order(*at) == 0) {
      ++at;
      continue;
    }
    const auto end = std::find_if(at, points.end(), [&](auto c) { return order(c) == 0; });
    std::stable_sort(at, end, [&](auto a, auto b) { return order(a) < order(b); });
    at = end;
  }
}

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

void append_utf8(std::string& text, char32_t c) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

// Table 3-7 of the Unicode standard; an ill-formed part is a maximal subpart of a code point.
Utf8Prefix utf8_prefix(std::string_view bytes) {
  using Kind = Utf8Prefix::Kind;
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Kind::valid, 1};
  if (lead < 0xc2 || lead > 0xf4) return {Kind::invalid, 1};
  const size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  unsigned low = 0x80, high = 0xbf;  // of the second byte
  if (lead == 0xe0) low = 0xa0;
  if (lead == 0xed) high = 0x9f;
  if (lead == 0xf0) low = 0x90;
  if (lead == 0xf4) high = 0x8f;
  for (size_t i = 1; i < size; ++i) {
    if (i == bytes.size()) return {Kind::incomplete, i};
    if (byte(i) < low || byte(i) > high) return {Kind::invalid, i};
    low = 0x80, high = 0xbf;
  }
  return {Kind::valid, size};
}

void take_utf8(std::string& bytes, bool last, std::string& text) {
  size_t done = 0;
  while (done < bytes.size()) {
    const Utf8Prefix prefix = utf8_prefix(std::string_view(bytes).substr(done));
    if (prefix.kind == Utf8Prefix::Kind::incomplete && !last) break;
    if (prefix.kind == Utf8Prefix::Kind::valid)
      text.append(bytes, done, prefix.bytes);
    else
      text += replacement;
    done += prefix.bytes;
  }
  bytes.erase(0, done);
}

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  const auto kind = category(c);
  return c == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

bool is_mark(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_other(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_CC;
}

bool is_word(char32_t c) {
  const auto kind = category(c);
  const bool letter = kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
  // Symbols with Other_Alphabetic: circled, squared and negative letters.
  const bool enclosed = (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
                        (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
  const bool joiner = c == 0x200c || c == 0x200d;
  return letter || is_mark(c) || kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC || enclosed || joiner;
}

bool is_cjk_ideograph(char32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) ||
         (c >= 0x20000 && c <= 0x2a6df) || (c >= 0x2a700 && c <= 0x2b73f) ||
         (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void append_lower_case(std::string& text, char32_t c) {
  if (c == 0x130) {  // the one code point whose lower case is two
    text += "i\xcc\x87";
    return;
  }
  append_utf8(text, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string normal_form(std::string_view text, NormalForm form) {
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c >= 0; });
  if (ascii) return std::string(text);
  const bool compose = form == NormalForm::nfc || form == NormalForm::nfkc;
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  std::vector<utf8proc_int32_t> points = decompose(text, compatible);
  order_marks(points);
  if (compose) {
    const auto count = utf8proc_normalize_utf32(
        points.data(), static_cast<utf8proc_ssize_t>(points.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    points.resize(static_cast<size_t>(count));
  }
  std::string result;
  for (auto c : points) append_utf8(result, static_cast<char32_t>(c));
  return result;
}

size_t grapheme_end(std::string_view text, size_t at) {
  CodePoint last = code_point_at(text, at);
  utf8proc_int32_t state = 0;
  for (at += last.bytes; at < text.size(); at += last.bytes) {
    const CodePoint next = code_point_at(text, at);
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(last.value),
                                         static_cast<utf8proc_int32_t>(next.value), &state))
      break;
    last = next;
  }
  return at;
}

}  // namespace sinter
