#include "ir/ties.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "ir/dtype.h"

namespace sinter {
namespace {

/// Whether x >= 0 is an odd multiple of 2^exponent.
bool is_odd_multiple(double x, int exponent) { return std::fmod(std::ldexp(x, -exponent), 2) == 1; }

/// Whether x > 0 is halfway between two neighbouring numbers of a float type of this many `digits`,
/// whose normal numbers begin at 2^least.
bool is_float_tie(double x, int digits, int least) {
  return is_odd_multiple(x, std::max(std::ilogb(x), least) - digits);
}

/// Whether x > 0 is halfway between two neighbouring numbers of any type.
bool is_tie(double x) {
  const auto is_tie_of = [&](const DTypeInfo& type) {
    return type.type_class == DTypeClass::real && is_float_tie(x, type.digits, type.least_exponent);
  };
  return is_odd_multiple(x, -1) ||  // integers
         std::any_of(std::begin(kDTypes), std::end(kDTypes), is_tie_of);
}

/// A number as 0.DIGITS times base^exponent, in which DIGITS neither begin nor end with 0. The base
/// is 10, of a hexadecimal number 2.
using Expansion = std::pair<int64_t, std::string>;

Expansion expansion(std::string_view text, bool hexadecimal) {
  Expansion result;
  auto& [exponent, digits] = result;
  const size_t mantissa = text.find_first_of(hexadecimal ? "pP" : "eE");
  const int64_t places = hexadecimal ? 4 : 1;  // of the base, for each character
  bool fraction = false;
  for (const char c : text.substr(0, mantissa)) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    exponent += fraction ? 0 : places;
    const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
    if (!hexadecimal) digits += c;
    for (int bit = 3; hexadecimal && bit >= 0; --bit) digits += digit >> bit & 1 ? '1' : '0';
  }
  if (mantissa != std::string_view::npos) {
    std::string_view power = text.substr(mantissa + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    int64_t value = 0;
    std::from_chars(power.data(), power.data() + power.size(), value);
    exponent += value;
  }
  const size_t zeros = std::min(digits.find_first_not_of('0'), digits.size());
  digits.erase(0, zeros);
  exponent -= static_cast<int64_t>(zeros);
  digits.erase(digits.find_last_not_of('0') + 1);
  return result;
}

/// All digits of a double.
Expansion expansion(double x, bool hexadecimal) {
  char text[1100];  // 767 decimal digits at most, or 53 bits
  const auto end = hexadecimal
                       ? std::to_chars(text, std::end(text), x, std::chars_format::hex)
                       : std::to_chars(text, std::end(text), x, std::chars_format::scientific, 766);
  return expansion(std::string_view(text, static_cast<size_t>(end.ptr - text)), hexadecimal);
}

}  // namespace

double beside_tie(double nearest, std::string_view digits, bool hexadecimal) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(nearest > 0 && nearest < kInfinity) || !is_tie(nearest)) return nearest;
  const Expansion number = expansion(digits, hexadecimal);
  const Expansion tie = expansion(nearest, hexadecimal);
  // Digits compare as the fractions that they write: a prefix is the smaller one.
  if (number == tie) return nearest;
  return std::nextafter(nearest, number > tie ? kInfinity : 0);
}

}  // namespace sinter
