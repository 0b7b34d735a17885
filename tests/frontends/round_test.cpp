// Weights rounded to codes and scales: each code is the nearest, by search among all values, and
// the config that describes them is read as the scheme that they have. SINTER_TRIES=N rounds N rows
// of each format and type of scales.
#include "frontends/quantized/round.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>

#include "frontends/huggingface/quantization.h"
#include "ir/packed_codes.h"

namespace sinter::round_test {
namespace {

/// The value of code `i` of a row, as its layout says it.
float value_of(const WeightScheme& scheme, std::span<const std::byte> codes, size_t i) {
  const size_t bit = i * static_cast<size_t>(scheme.bits);
  const auto field =
      std::to_integer<uint32_t>(codes[bit / 8]) >> bit % 8 & ((1u << scheme.bits) - 1);
  if (scheme.is_float) return codes::e4m3::value(field, 0);
  if (scheme.layout == WeightLayout::plain) return static_cast<float>(static_cast<int8_t>(field));
  return static_cast<float>(field) - std::ldexp(1.0f, scheme.bits - 1);
}

float scale_of(DType dtype, std::span<const std::byte> scales, size_t g) {
  if (dtype == DType::f32) {
    float scale;
    std::memcpy(&scale, scales.data() + 4 * g, 4);
    return scale;
  }
  math::u16 bits;
  std::memcpy(&bits, scales.data() + 2 * g, 2);
  return dtype == DType::f16 ? math::f16_to_float(bits) : math::bf16_to_float(bits);
}

/// All values that codes of the scheme have.
std::vector<float> all_values(const WeightScheme& scheme) {
  std::vector<float> values;
  if (!scheme.is_float) {
    const float least = -std::ldexp(1.0f, scheme.bits - 1);
    for (float value = least; value < -least; ++value) values.push_back(value);
    return values;
  }
  for (uint32_t code = 0; code < 256; ++code)
    if ((code & 0x7f) != 0x7f) values.push_back(codes::e4m3::value(code, 0));
  return values;
}

struct RoundedRow {
  std::vector<std::byte> codes, scales;
  bool finite;
};

RoundedRow round(const WeightScheme& scheme, DType scale, std::span<const float> row) {
  const auto in = static_cast<int64_t>(row.size());
  RoundedRow rounded{std::vector<std::byte>(rounded_row_bytes(scheme, in), std::byte{0x55}),
                     std::vector<std::byte>(
                         static_cast<size_t>(storage_bytes(scale, rounded_row_scales(scheme, in)))),
                     false};
  rounded.finite = round_row(scheme, scale, row, rounded.codes, rounded.scales);
  return rounded;
}

}  // namespace

TEST_CASE("rounding: each code is the nearest one of its scale, ties to even") {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<WeightScheme> schemes;
  for (const RoundedFormat& format : rounded_formats()) {
    schemes.push_back(format.scheme);
    schemes.push_back(format.table);
  }
  for (const WeightScheme& scheme : schemes)
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(to_string(scheme));
      const std::vector<float> values = all_values(scheme);
      std::vector<float> row(256);
      for (float& weight : row) weight = 0.02f * normal(random);
      const RoundedRow rounded = round(scheme, dtype, row);
      REQUIRE(rounded.finite);
      const size_t length = scheme.group == 0 ? row.size() : static_cast<size_t>(scheme.group);
      for (size_t i = 0; i < row.size(); ++i) {
        const float scale = scale_of(dtype, rounded.scales, i / length);
        const float ratio = row[i] / scale, found = value_of(scheme, rounded.codes, i);
        for (float value : values) CHECK(std::fabs(ratio - found) <= std::fabs(ratio - value));
      }
    }
}

TEST_CASE("rounding: scales hold rows of every magnitude, elements are within half a step") {
  std::mt19937 random(2);
  std::normal_distribution<double> normal;
  const char* wanted = std::getenv("SINTER_TRIES");
  const int tries = wanted ? std::atoi(wanted) : 100;
  for (const RoundedFormat& format : rounded_formats())
    for (DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (int trial = 0; trial < tries; ++trial) {
        const WeightScheme& scheme = format.scheme;
        CAPTURE(format.name);
        CAPTURE(to_string(dtype));
        // 1e-8 to 6e4 of a normal f16 model, and subnormal ones of f32 and bf16.
        const double magnitude =
            dtype == DType::f16 || trial % 2 == 0
                ? std::exp(std::uniform_real_distribution<double>(-18.4, 9.6)(random))
                : std::ldexp(1.0, -149 + trial % 200);
        CAPTURE(magnitude);
        std::vector<float> row(128);
        for (float& weight : row) weight = static_cast<float>(magnitude * normal(random));
        if (trial % 5 == 1) row[17] = static_cast<float>(4096 * magnitude);
        if (trial % 5 == 2) std::fill(row.begin(), row.begin() + 64, 0.0f);
        // As files of the type have them: in f16 multiples of 2^-24.
        if (dtype == DType::f16)
          for (float& weight : row)
            weight =
                math::f16_to_float(math::float_to_f16(std::clamp(weight, -65504.0f, 65504.0f)));
        const RoundedRow rounded = round(scheme, dtype, row);
        const std::vector<float> values = all_values(scheme);
        REQUIRE(rounded.finite);
        const size_t length = scheme.group == 0 ? row.size() : static_cast<size_t>(scheme.group);
        const double half = scheme.is_float ? 448 : std::ldexp(1.0, scheme.bits - 1) - 0.5;
        for (size_t g = 0; g < row.size() / length; ++g) {
          const float scale = scale_of(dtype, rounded.scales, g);
          float largest = 0;
          for (size_t i = g * length; i < (g + 1) * length; ++i) {
            largest = std::max(largest, std::fabs(row[i]));
            const double ratio = row[i] / static_cast<double>(scale),
                         found = value_of(scheme, rounded.codes, i);
            double nearest = std::numeric_limits<double>::infinity();
            for (float value : values) nearest = std::min(nearest, std::fabs(ratio - value));
            CHECK(std::fabs(ratio - found) <= nearest + 1e-5);
            if (!scheme.is_float) CHECK(std::fabs(ratio - found) <= 0.5 + 1e-5);
          }
          if (largest == 0) continue;
          // The least scale of the type that reaches the largest element.
          const float below = dtype == DType::f32 ? std::nextafter(scale, 0.0f)
                              : dtype == DType::f16
                                  ? math::f16_to_float(math::float_to_f16(scale) - 1)
                                  : math::bf16_to_float(math::float_to_bf16(scale) - 1);
          CHECK(scale * half >= largest);
          CHECK(below * half < largest);
        }
      }
}

TEST_CASE("rounding: every value of e4m3 and every tie between two of them") {
  const WeightScheme& scheme = find_rounded_format("fp8")->scheme;
  for (uint32_t code = 0; code < 0x7e; ++code) {
    const float value = codes::e4m3::value(code, 0), next = codes::e4m3::value(code + 1, 0);
    const float tie = (value + next) / 2;
    // 448 makes the scale 1.
    const float row[] = {value, -value, tie, std::nextafter(tie, 0.0f), std::nextafter(tie, 500.0f),
                         448,   -448,   0};
    const RoundedRow rounded = round(scheme, DType::f32, row);
    CAPTURE(code);
    CHECK(value_of(scheme, rounded.codes, 0) == value);
    CHECK(value_of(scheme, rounded.codes, 1) == -value);
    CHECK(value_of(scheme, rounded.codes, 2) == (code % 2 == 0 ? value : next));
    CHECK(value_of(scheme, rounded.codes, 3) == value);
    CHECK(value_of(scheme, rounded.codes, 4) == next);
    CHECK(value_of(scheme, rounded.codes, 5) == 448);
    CHECK(value_of(scheme, rounded.codes, 6) == -448);
  }
}

TEST_CASE("rounding: groups of zeros, of tiny numbers, and of what is no number") {
  for (const RoundedFormat& format : rounded_formats()) {
    CAPTURE(format.name);
    std::vector<float> row(128, 0.0f);
    const RoundedRow zeros = round(format.scheme, DType::f16, row);
    REQUIRE(zeros.finite);
    CHECK(scale_of(DType::f16, zeros.scales, 0) == 1);
    for (size_t i = 0; i < row.size(); ++i) CHECK(value_of(format.scheme, zeros.codes, i) == 0);
    // No f16 is nearer to it than 0.
    row[3] = 1e-30f;
    const RoundedRow tiny = round(format.scheme, DType::f16, row);
    CHECK(scale_of(DType::f16, tiny.scales, 0) == 0x1p-24f);
    CHECK(value_of(format.scheme, tiny.codes, 3) == 0);
    // Its scale is beyond f16, not beyond bf16.
    row[3] = 1e30f;
    CHECK_FALSE(round(format.scheme, DType::f16, row).finite);
    CHECK(round(format.scheme, DType::bf16, row).finite);
    for (const float value : {std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity(), std::nanf("")}) {
      row[77] = value;
      CHECK_FALSE(round(format.scheme, DType::f16, row).finite);
    }
  }
}

TEST_CASE("rounding: the config of a rounded model is read as its scheme") {
  for (const RoundedFormat& format : rounded_formats()) {
    CAPTURE(format.name);
    const std::vector<std::string> kept = {"lm_head", "a \"name\""};
    const auto read =
        read_quantization_text(compressed_tensors_text(format.scheme, &format.table, kept), "c");
    REQUIRE(read);
    CHECK(read->method == "compressed-tensors");
    REQUIRE(read->groups.size() == 2);
    CHECK(read->groups[1].scheme == format.table);
    CHECK(read->groups[0].scheme == format.scheme);
    for (const std::string& name : kept) CHECK(*read->scheme_of(name) == nullptr);
    CHECK(*read->scheme_of("model.layers.0.mlp.up_proj") == &read->groups[0].scheme);
  }
  CHECK(find_rounded_format("int3") == nullptr);
}

}  // namespace sinter::round_test
