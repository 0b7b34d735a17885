#include "ir/error.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "ir/guarded.h"

namespace sinter {
namespace {

/// Length of the UTF-8 sequence at text[i]; 0 if it is not well formed, or cut off by the end.
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

/// The character at text[i], whose sequence has `length` bytes.
char32_t code_point(std::string_view text, size_t i, size_t length) {
  constexpr unsigned char kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t c = static_cast<unsigned char>(text[i]) & kLeadBits[length];
  for (size_t k = 1; k < length; ++k) c = c << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
  return c;
}

bool obeyed_or_hidden(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x61C || c == 0x200E || c == 0x200F ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069);
}

/// Appends the character at text[i], escaped if a terminal would obey or hide it, and returns how
/// many bytes it has.
size_t append_escaped(std::string& out, std::string_view text, size_t i) {
  const size_t length = utf8_length(text, i);
  const std::string_view bytes = text.substr(i, std::max<size_t>(length, 1));
  if (length > 0 && !obeyed_or_hidden(code_point(text, i, length)))
    out += bytes;
  else
    for (const char byte : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  return bytes.size();
}

}  // namespace

std::string escape_controls(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '\n' || text[i] == '\t')
      out += text[i++];
    else
      i += append_escaped(out, text, i);
  }
  return out;
}

std::string printable(std::string_view text, size_t limit) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (out.size() >= limit) return out + "...";
    if (text[i] == '"' || text[i] == '\\') out += '\\';
    i += append_escaped(out, text, i);
  }
  return out;
}

std::string Error::message() const {
  std::string line;
  if (!where.empty()) line += where + ": ";
  line += what;
  if (!hint.empty()) line += "; " + hint;
  for (char& c : line)
    if (c == '\n' || c == '\t') c = ' ';
  return escape_controls(line);
}

tl::unexpected<Error> unexpected_exception(const char* what) noexcept {
  try {
    return fail(what, {}, "this is a bug of the compiler; please report it",
                ExitCode::internal_error);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", {}, {}, ExitCode::out_of_memory);
  }
}

std::string errno_text(int error) { return std::generic_category().message(error); }

void check_failed(const char* file, int line, const char* condition, const std::string& message) {
  if (InvariantsThrow::here())
    throw BrokenInvariant{
        {fmt::format("internal error: check failed: {}{}{}", condition, message.empty() ? "" : ": ",
                     message),
         fmt::format("{}:{}", file, line),
         "this is a bug of the compiler; please report it with the model's config",
         ExitCode::internal_error}};
  std::fprintf(stderr, "sinter: internal error: %s:%d: check failed: %s%s%s\n", file, line,
               condition, message.empty() ? "" : ": ", escape_controls(message).c_str());
  std::fprintf(stderr, "this is a bug of the compiler; please report it with the model's config\n");
  std::exit(static_cast<int>(ExitCode::internal_error));
}

}  // namespace sinter
