#include "driver/integers.h"

#include <algorithm>
#include <charconv>

namespace sinter {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kEnds = ", \t\r\n";  // of an item
constexpr const char* kListHint = "write decimal numbers with commas between, e.g. 1,2,3";

/// Why `text` is no number of the range; empty: it is `value`.
template <typename T>
std::string read_number(std::string_view text, IntegerRange<T> range, T& value) {
  const bool negative = text.starts_with('-') && range.least < T{};
  const std::string_view digits = text.substr(negative ? 1 : 0);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (text.starts_with('-') && !negative && text.size() > 1 &&
      std::all_of(text.begin() + 1, text.end(), is_digit))
    return fmt::format("is below {}", range.least);
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), is_digit))
    return "is no decimal number";
  if (text == "-0") return "is no decimal number";
  if (digits.size() > 1 && digits[0] == '0') return "has a leading zero";
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && value >= range.least && value <= range.most) return "";
  const bool below = error == std::errc() ? value < range.least : negative;
  return below ? fmt::format("is below {}", range.least) : fmt::format("is above {}", range.most);
}

}  // namespace

template <typename T>
Result<T> parse_integer(std::string_view text, const std::string& where, IntegerRange<T> range,
                        ExitCode code) {
  T value = 0;
  const std::string wrong = read_number(text, range, value);
  if (wrong.empty()) return value;
  return fail(fmt::format("\"{}\" {}", printable(text, 40), wrong), where,
              "write one decimal number, e.g. 16", code);
}

template <typename T>
Result<std::vector<T>> parse_integers(std::string_view text, const std::string& where,
                                      IntegerRange<T> range, ExitCode code) {
  const auto skip_blanks = [&](size_t at) {
    return std::min(text.find_first_not_of(kBlanks, at), text.size());
  };
  std::vector<T> values;
  size_t at = skip_blanks(0);
  if (at == text.size()) return fail("the list of numbers is empty", where, kListHint, code);
  for (bool more = true; more;) {
    const size_t end = std::min(text.find_first_of(kEnds, at), text.size());
    if (end == at)
      return fail(fmt::format("item {} at byte {} is empty", values.size() + 1, at + 1), where,
                  kListHint, code);
    T value = 0;
    const std::string_view item = text.substr(at, end - at);
    if (const std::string wrong = read_number(item, range, value); !wrong.empty())
      return fail(fmt::format("item {} at byte {}, \"{}\", {}", values.size() + 1, at + 1,
                              printable(item, 40), wrong),
                  where, kListHint, code);
    values.push_back(value);
    at = skip_blanks(end);
    more = at < text.size();
    if (more && text[at] == ',') at = skip_blanks(at + 1);  // an item must follow
  }
  return values;
}

#define SINTER_INTEGERS(T)                                                                \
  template Result<T> parse_integer(std::string_view, const std::string&, IntegerRange<T>, \
                                   ExitCode);                                             \
  template Result<std::vector<T>> parse_integers(std::string_view, const std::string&,    \
                                                 IntegerRange<T>, ExitCode);
SINTER_INTEGERS(int32_t)
SINTER_INTEGERS(int64_t)
SINTER_INTEGERS(uint64_t)
#undef SINTER_INTEGERS

}  // namespace sinter
