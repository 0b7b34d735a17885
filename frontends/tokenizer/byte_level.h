// The byte-level alphabet of GPT-2: every byte is a printable character. Bytes that are printable
// in Latin-1 stand for themselves, the 68 others for U+0100 and up, in order.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sinter {

/// The bytes of `text`, written in the alphabet, at the end of `out`.
void append_byte_level(std::string& out, std::string_view text);

/// The bytes that `text` (UTF-8) writes; nothing if a character is not of the alphabet.
std::optional<std::string> bytes_of_byte_level(std::string_view text);

}  // namespace sinter
