#include "cli/input.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace sinter {

namespace {

/// Appends what is there next; false at the end.
Result<bool> read_more(std::string& text) {
  constexpr size_t kMaxBytes = size_t{1} << 30;
  std::array<char, 1 << 16> chunk;
  ssize_t count = 0;
  do count = ::read(STDIN_FILENO, chunk.data(), chunk.size());
  while (count < 0 && errno == EINTR);
  if (count < 0) return fail(fmt::format("cannot read: {}", errno_text()), "standard input");
  text.append(chunk.data(), static_cast<size_t>(count));
  if (text.size() > kMaxBytes)
    return fail(fmt::format("more than {} bytes", kMaxBytes), "standard input",
                "give a shorter text");
  return count > 0;
}

}  // namespace

Result<std::string> read_input() {
  std::string text;
  while (true) {
    SINTER_LET(more, read_more(text));
    if (!more) return text;
  }
}

Result<std::optional<std::string>> InputLines::next() {
  while (!ended_ && read_.find('\n') == read_.npos) {
    SINTER_LET(more, read_more(read_));
    ended_ = !more;
  }
  if (read_.empty()) return std::nullopt;
  const size_t end = std::min(read_.find('\n'), read_.size());
  std::string line = read_.substr(0, end);
  read_.erase(0, end + 1);
  if (line.ends_with('\r')) line.pop_back();
  return line;
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
