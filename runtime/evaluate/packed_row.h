// Rows of packed matrices (ir/packed_codes.h) in host memory.
#pragma once

#include <cstddef>
#include <vector>

#include "ir/code_format.h"

namespace sinter {

/// The numbers of one packed row; T is float or double.
template <typename T>
struct UnpackedRow {
  std::vector<T> codes;           // less their zeros; exact
  std::vector<T> scales, minima;  // one a group; minima: empty where the format has none

  /// Reads `length` codes and their scales.
  void read(const CodeFormat& format, int64_t length, const std::byte* row);
};

/// Writes the packed row of these codes. `words`: dense codes (code_words() of them); `scales` and
/// `minima`: one a group, in the scale's type; null where the format has none.
void pack_row(const CodeFormat& format, int64_t length, const int32_t* words,
              const std::byte* scales, const int32_t* zeros, const std::byte* minima,
              std::byte* row);

}  // namespace sinter
