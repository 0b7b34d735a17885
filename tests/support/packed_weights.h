// Packed matrices for tests: random codes, and what they mean by the definition.
#pragma once

#include <random>
#include <vector>

#include "ir/code_format.h"
#include "runtime/evaluate/host_tensor.h"
#include "runtime/evaluate/packed_row.h"

namespace sinter::test {

/// A quantized matrix as a file would have it, row-major.
struct StoredCodes {
  CodeFormat format;
  int64_t rows = 0, length = 0;
  std::vector<int32_t> words;  // code_words a row
  std::vector<std::byte> scales, minima;
  std::vector<int32_t> zeros, parts;
  std::vector<double> values;  // scale * (code - zero) - minimum, not rounded

  DenseCodes dense() const;

  /// The operands of pack_codes.
  std::vector<HostTensor> operands() const;
  /// i32 [rows, row_words].
  HostTensor packed() const;
};

/// Random codes, without NaN. `numbers`: many_digits, scales and minima of both signs; few_digits,
/// values of so few binary digits that sums of their products with small integers are exact.
enum class Numbers : uint8_t { many_digits, few_digits };
StoredCodes random_codes(const CodeFormat& format, int64_t rows, int64_t length, uint64_t seed,
                         Numbers numbers = Numbers::many_digits);

/// The value of a code's bits, by its definition in real numbers.
double defined_value(Code code, uint32_t bits);

/// Every code, group, type of scale, and both zeros and minima.
std::vector<CodeFormat> code_formats();

}  // namespace sinter::test
