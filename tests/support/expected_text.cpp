#include "support/expected_text.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

namespace sinter::test {
namespace {

/// Unset, empty and 0 mean no, as does everything else but 1.
bool blessing() {
  const char* bless = std::getenv("SINTER_BLESS");
  return bless != nullptr && std::string_view(bless) == "1";
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string line_difference(const std::string& wanted, const std::string& got) {
  const std::vector<std::string> a = lines_of(wanted), b = lines_of(got);
  size_t head = 0, tail = 0;
  while (head < std::min(a.size(), b.size()) && a[head] == b[head]) ++head;
  while (tail < std::min(a.size(), b.size()) - head &&
         a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  std::string text;
  if (head > 0) text += "  " + a[head - 1] + "\n";
  for (size_t i = head; i + tail < a.size(); ++i) text += "- " + a[i] + "\n";
  for (size_t i = head; i + tail < b.size(); ++i) text += "+ " + b[i] + "\n";
  return text;
}

std::string compare_text_file(const std::string& text, const std::string& path) {
  if (blessing()) {
    std::ofstream file(path, std::ios::binary);
    file << text << std::flush;
    return file ? "" : "cannot write " + path + "\n";
  }
  const std::string wanted = read_text(path);
  if (text == wanted) return "";
  const std::string difference = line_difference(wanted, text);
  return difference.empty() ? "line ends differ\n" : difference;
}

}  // namespace sinter::test
