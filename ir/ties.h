// Decimal numbers that a double cannot tell from a tie of an element type.
#pragma once

#include <string_view>

namespace sinter {

/// The double for the number that `digits` writes, of which `nearest` is the nearest double: a
/// float or integer type rounds it as it would round the number. That is `nearest`, but where it is
/// halfway between two numbers of a type and the number is not, the next double on the number's
/// side.
/// `digits` has no sign, and no "0x" in front where it is hexadecimal (with an exponent behind
/// "p").
double beside_tie(double nearest, std::string_view digits, bool hexadecimal);

}  // namespace sinter
