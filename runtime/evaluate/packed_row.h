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

/// The operands of pack_codes, row-major; null where the format has none.
struct DenseCodes {
  const int32_t* words = nullptr;     // code_words() a row
  const std::byte* scales = nullptr;  // code_scales() a row, of the scale's type
  const int32_t* zeros = nullptr;     // one a group
  const std::byte* minima = nullptr;  // as the scales
  const int32_t* parts = nullptr;     // one a group

  /// Of row `m` alone.
  DenseCodes row(const CodeFormat& format, int64_t length, int64_t m) const;
};

/// Writes the packed row of the one row of `codes`.
void pack_row(const CodeFormat& format, int64_t length, const DenseCodes& codes, std::byte* row);

}  // namespace sinter
