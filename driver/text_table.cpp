#include "driver/text_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinter {
namespace {

/// Characters of UTF-8 text; the tables hold none of double width.
size_t width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

}  // namespace

std::string TextTable::str(size_t indent) const {
  std::vector<size_t> widths(alignment_.size(), 0);
  for (const auto& row : rows_)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  std::string text;
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      const std::string blank(widths[i] - width(row[i]), ' ');
      line += alignment_[i] == 'r' ? blank + row[i] : row[i] + blank;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string with_unit(double amount, std::string_view unit) {
  static constexpr std::string_view kPrefixes[] = {"", "K", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  // 999.5 would be rounded to four digits.
  while (amount >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    amount /= 1000;
    ++prefix;
  }
  const int digits = prefix == 0 || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", amount, digits, kPrefixes[prefix], unit);
}

std::string duration(double seconds) {
  const auto digits = [](double value) { return value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2; };
  for (const auto& [unit, name] : {std::pair(1.0, "s"), {1e-3, "ms"}})
    if (seconds >= unit * 0.9995)
      return fmt::format("{:.{}f} {}", seconds / unit, digits(seconds / unit), name);
  return fmt::format("{:.{}f} µs", seconds * 1e6, digits(seconds * 1e6));
}

std::string counted(uint64_t count, std::string_view noun, std::string_view plural) {
  if (count != 1 && !plural.empty()) return fmt::format("{} {}", count, plural);
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace sinter
