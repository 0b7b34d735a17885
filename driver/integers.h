// Whole numbers as people write them, on a command line and in a file: decimal digits without
// leading zeros, after a minus where the least value is negative. Other programs read 010 as 8, and
// 0x10 and +1 in several ways; all are refused.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "ir/error.h"

namespace sinter {

/// The values that a number may have.
template <typename T>
struct IntegerRange {
  T least = std::numeric_limits<T>::min();
  T most = std::numeric_limits<T>::max();
};

/// `text` as one number. T: int32_t, int64_t or uint64_t. An error names `where` and has `code`.
template <typename T>
Result<T> parse_integer(std::string_view text, const std::string& where, IntegerRange<T> range = {},
                        ExitCode code = ExitCode::usage);

/// "1,2 3" as at least one number: a comma or blanks stand between two, and no item is empty. An
/// error names the item and the byte where it begins, both counted from 1.
template <typename T>
Result<std::vector<T>> parse_integers(std::string_view text, const std::string& where,
                                      IntegerRange<T> range = {}, ExitCode code = ExitCode::usage);

}  // namespace sinter
