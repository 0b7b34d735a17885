// Weights rounded to codes and scales: each code is the nearest, by search among all values, and
// the config that describes them is read as the scheme that they have.
#include "frontends/quantized/round.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "frontends/huggingface/quantization.h"
#include "ir/packed_codes.h"

namespace sinter {
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
      for (size_t g = 0; g < row.size() / length; ++g) {
        float largest = 0;
        for (float weight : std::span(row).subspan(g * length, length))
          largest = std::max(largest, std::fabs(weight));
        const float half = scheme.is_float ? 448 : std::ldexp(1.0f, scheme.bits - 1) - 0.5f;
        CHECK(scale_of(dtype, rounded.scales, g) ==
              doctest::Approx(largest / half).epsilon(dtype == DType::bf16 ? 0.004 : 0.001));
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
    // The scale is 0 as an f16.
    row[3] = 1e-30f;
    const RoundedRow tiny = round(format.scheme, DType::f16, row);
    CHECK(scale_of(DType::f16, tiny.scales, 0) == 1);
    CHECK(value_of(format.scheme, tiny.codes, 3) == 0);
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

}  // namespace sinter
