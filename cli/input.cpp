#include "cli/input.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace sinter {

Result<std::string> read_input() {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (true) {
    const ssize_t count = ::read(STDIN_FILENO, chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(fmt::format("cannot read: {}", errno_text()), "standard input");
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<size_t>(count));
    if (text.size() > kMaxBytes)
      return fail(fmt::format("more than {} bytes", kMaxBytes), "standard input",
                  "give a shorter text");
  }
}

void append_lines(std::string_view text, std::vector<std::string>& lines) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace sinter
