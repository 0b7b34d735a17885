#include "support/packed_weights.h"

#include <array>
#include <cmath>
#include <cstring>

#include "ir/scalar_math.h"
#include "runtime/evaluate/packed_row.h"

namespace sinter::test {
namespace {

/// Appends a number, rounded to `dtype`; the number as it is stored.
double append(DType dtype, double value, std::vector<std::byte>& bytes) {
  const auto put = [&](auto stored) {
    const auto* from = reinterpret_cast<const std::byte*>(&stored);
    bytes.insert(bytes.end(), from, from + sizeof(stored));
  };
  const auto real = static_cast<float>(value);
  if (dtype == DType::f32) return put(real), real;
  if (dtype == DType::f16)
    return put(math::float_to_f16(real)), math::f16_to_float(math::float_to_f16(real));
  return put(math::float_to_bf16(real)), math::bf16_to_float(math::float_to_bf16(real));
}

HostTensor tensor_of(DType dtype, int64_t rows, int64_t columns, const void* from) {
  HostTensor tensor = *make_tensor(dtype, {rows, columns});
  if (!tensor.bytes.empty()) std::memcpy(tensor.bytes.data(), from, tensor.bytes.size());
  return tensor;
}

}  // namespace

double defined_value(Code code, uint32_t bits) {
  const auto floating = [&](int exponent_bits, int mantissa_bits, int bias) {
    const uint32_t sign = bits >> (exponent_bits + mantissa_bits);
    const auto exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
    const double fraction = std::ldexp(bits & ((1u << mantissa_bits) - 1), -mantissa_bits);
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
    return sign != 0 ? -magnitude : magnitude;
  };
  switch (code) {
    case Code::int8:
      return bits < 128 ? bits : bits - 256.0;
    case Code::uint8:
    case Code::uint5:
    case Code::uint4:
      return bits;
    case Code::int4:
      return bits - 8.0;
    case Code::int5:
      return bits - 16.0;
    case Code::int6:
      return bits - 32.0;
    case Code::e4m3:
      return (bits & 0x7f) == 0x7f ? NAN : floating(4, 3, 7);
    case Code::e2m1:
      return floating(2, 1, 1);
    case Code::iq4nl:
      return std::array{
          -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}[bits];
  }
  return NAN;
}

namespace {

/// Any part of the format, or of few digits.
CodeParts random_parts(const CodeFormat& format, bool few_digits, std::mt19937_64& random) {
  const auto number = [&](int bits, int less) {
    return static_cast<int>(few_digits ? random() % 4 : random() % (1u << bits)) -
           (few_digits ? 0 : less);
  };
  const bool is_signed = format.part_bits == 8 || !format.minima;
  const int scale = number(format.part_bits, is_signed ? 1 << (format.part_bits - 1) : 0);
  return {scale, format.minima ? number(6, 0) : 0};
}

}  // namespace

StoredCodes random_codes(const CodeFormat& format, int64_t rows, int64_t length, uint64_t seed,
                         Numbers numbers) {
  std::mt19937_64 random(seed);
  const bool few_digits = numbers == Numbers::few_digits;
  const auto real = [&] {
    return few_digits ? static_cast<double>(random() % 3) - 1
                      : static_cast<double>(random() >> 11) * 0x1p-53 - 0.4;
  };
  StoredCodes stored{format, rows, length, {}, {}, {}, {}, {}, {}};
  const int64_t groups = code_groups(format, length), words = code_words(format, length);
  const auto bits = static_cast<int>(format.bits());
  for (int64_t m = 0; m < rows; ++m) {
    std::vector<double> scales, zeros, minima;
    for (int64_t g = 0; g < code_scales(format, length); ++g) {
      scales.push_back(append(format.scale, few_digits ? real() : real() / 8, stored.scales));
      minima.push_back(format.minima ? append(format.scale, real(), stored.minima) : 0);
    }
    for (int64_t g = 0; g < groups; ++g) {
      stored.zeros.push_back(static_cast<int32_t>(random() % 20) - 3);
      zeros.push_back(format.zeros ? stored.zeros.back() : 0);
    }
    if (format.part_bits != 0) {
      const std::vector<double> factors = std::move(scales), of_minima = std::move(minima);
      scales.clear(), minima.clear();
      for (int64_t g = 0; g < groups; ++g) {
        const auto round = static_cast<size_t>(g * format.group / kCodeRound);
        const CodeParts parts = random_parts(format, few_digits, random);
        stored.parts.push_back(join_parts(parts));
        scales.push_back(factors[round] * parts.scale);
        minima.push_back(of_minima[round] * parts.minimum);
      }
    }
    std::vector<uint32_t> row(static_cast<size_t>(words), 0);
    for (int64_t k = 0; k < length; ++k) {
      auto code = static_cast<uint32_t>(random() & ((1u << bits) - 1));
      if (few_digits && format.code == Code::e4m3) code = (code & 0x87) | 0x38;  // 1 to 1.875
      if (std::isnan(defined_value(format.code, code))) code = 1;
      const uint64_t placed = static_cast<uint64_t>(code) << (k * bits % 32);
      row[static_cast<size_t>(k * bits / 32)] |= static_cast<uint32_t>(placed);
      if (placed >> 32 != 0)
        row[static_cast<size_t>(k * bits / 32 + 1)] |= static_cast<uint32_t>(placed >> 32);
      const auto g = static_cast<size_t>(format.group == 0 ? 0 : k / format.group);
      stored.values.push_back(scales[g] * (defined_value(format.code, code) - zeros[g]) -
                              minima[g]);
    }
    for (uint32_t word : row) stored.words.push_back(static_cast<int32_t>(word));
  }
  if (!format.zeros) stored.zeros.clear();
  return stored;
}

std::vector<HostTensor> StoredCodes::operands() const {
  const int64_t groups = code_groups(format, length), factors = code_scales(format, length);
  std::vector<HostTensor> tensors = {
      tensor_of(DType::i32, rows, code_words(format, length), words.data()),
      tensor_of(format.scale, rows, factors, scales.data())};
  if (format.zeros) tensors.push_back(tensor_of(DType::i32, rows, groups, zeros.data()));
  if (format.minima) tensors.push_back(tensor_of(format.scale, rows, factors, minima.data()));
  if (format.part_bits != 0) tensors.push_back(tensor_of(DType::i32, rows, groups, parts.data()));
  return tensors;
}

DenseCodes StoredCodes::dense() const {
  return {words.data(), scales.data(), format.zeros ? zeros.data() : nullptr,
          format.minima ? minima.data() : nullptr, format.part_bits != 0 ? parts.data() : nullptr};
}

HostTensor StoredCodes::packed() const {
  HostTensor tensor = *make_tensor(DType::i32, {rows, row_words(format, length)});
  for (int64_t m = 0; m < rows; ++m)
    pack_row(format, length, dense().row(format, length, m),
             tensor.bytes.data() + 4 * m * row_words(format, length));
  return tensor;
}

std::vector<CodeFormat> code_formats() {
  std::vector<CodeFormat> formats;
  for (const char* text :
       {"int8 row f32", "e4m3 row bf16", "int4 g128 f16", "uint4 g128 f16 zeros", "e2m1 g16 f32",
        "e2m1 g32 bf16", "uint8 g64 bf16 zeros minima", "uint4 g32 f16 minima",
        "int4 row f32 minima", "uint8 row f16 zeros", "e4m3 g128 f32 minima", "int8 g16 f32 minima",
        "iq4nl g32 f16", "uint4 g32 f16x6 minima", "int6 g16 f16x8", "uint5 g32 f16x6 minima",
        "iq4nl g32 f16x6", "int5 g32 f16", "uint5 row f32 zeros"})
    formats.push_back(*parse_code_format(text));
  return formats;
}

}  // namespace sinter::test
