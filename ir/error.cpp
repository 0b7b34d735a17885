#include "ir/error.h"

#include <cstdio>
#include <cstdlib>

namespace sinter {
namespace {

/// Length of the UTF-8 sequence at text[i], or 0 if it is not well formed.
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) { return static_cast<unsigned char>(text[k]); };
  const unsigned char lead = byte(i);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : lead >= 0xE0 && lead < 0xF0 ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  if (length == 0 || i + length > text.size()) return 0;
  for (size_t k = 1; k < length; ++k)
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && byte(i + 1) < 0xA0) return 0;   // overlong
  if (lead == 0xED && byte(i + 1) >= 0xA0) return 0;  // surrogates
  if (lead == 0xF0 && byte(i + 1) < 0x90) return 0;
  if (lead == 0xF4 && byte(i + 1) >= 0x90) return 0;
  return length;
}

}  // namespace

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= limit) return out + "...";
    const unsigned char c = static_cast<unsigned char>(text[i]);
    const size_t length = utf8_length(text, i);
    const bool c1_control =
        length == 2 && c == 0xC2 && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (length == 0 || c < 0x20 || c == 0x7F || c1_control) {
      const size_t bytes = c1_control ? 2 : 1;
      for (size_t k = 0; k < bytes; ++k)
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i + k]));
      i += bytes;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out.append(text.substr(i, length));
      i += length;
    }
  }
  return out;
}

std::string Error::message() const {
  std::string line;
  if (!where.empty()) line += where + ": ";
  line += what;
  if (!hint.empty()) line += "; " + hint;
  std::string escaped;
  for (char c : line) {
    if (c == '\n' || c == '\t')
      escaped += ' ';
    else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)
      escaped += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    else
      escaped += c;
  }
  return escaped;
}

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "sinter: internal error: %s:%d: check failed: %s%s%s\n", file, line,
               condition, message.empty() ? "" : ": ", message.c_str());
  std::fprintf(stderr, "this is a bug of the compiler; please report it with the model's config\n");
  std::exit(static_cast<int>(ExitCode::internal_error));
}

}  // namespace sinter
