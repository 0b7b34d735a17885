#include "frontends/tokenizer/byte_level.h"

#include <array>

#include "frontends/tokenizer/unicode.h"

namespace sinter {
namespace {

constexpr size_t max_code_points = 0x144;  // the last character is U+0143

struct Alphabet {
  std::array<char[2], 256> utf8{};
  std::array<uint8_t, 256> utf8_bytes{};
  std::array<int16_t, max_code_points> byte_of{};  // -1: not of the alphabet

  Alphabet() {
    byte_of.fill(-1);
    char32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      const char32_t c = printable ? byte : next++;
      std::string text;
      append_utf8(text, c);
      text.copy(utf8[byte], 2);
      utf8_bytes[byte] = static_cast<uint8_t>(text.size());
      byte_of[c] = static_cast<int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet made;
  return made;
}

}  // namespace

void append_byte_level(std::string& out, std::string_view text) {
  const Alphabet& letters = alphabet();
  const size_t before = out.size();
  out.resize(before + 2 * text.size());
  char* end = out.data() + before;
  for (char byte : text) {
    const auto index = static_cast<unsigned char>(byte);
    end[0] = letters.utf8[index][0];
    end[1] = letters.utf8[index][1];
    end += letters.utf8_bytes[index];
  }
  out.resize(static_cast<size_t>(end - out.data()));
}

std::optional<std::string> bytes_of_byte_level(std::string_view text) {
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = code_point_at(text, at);
    at += c.bytes;
    if (c.value >= max_code_points || alphabet().byte_of[c.value] < 0) return std::nullopt;
    bytes += static_cast<char>(alphabet().byte_of[c.value]);
  }
  return bytes;
}

}  // namespace sinter
