#include "frontends/files/random_tensors.h"

#include <bit>
#include <cmath>
#include <vector>

#include "frontends/small_files.h"

namespace sinter::random_tensors_test {
namespace {

RandomTensorSource source(uint64_t seed, DType dtype = DType::f32) {
  return RandomTensorSource(seed, {{"l0.q_proj.weight", {dtype, {64, 1000}}},
                                   {"l1.q_proj.weight", {dtype, {64, 1000}}},
                                   {"model.norm.weight", {dtype, {1000}}},
                                   {"ln_f.weight", {dtype, {1000}}},
                                   {"e.LayerNorm.gamma", {dtype, {1000}}},
                                   {"model.norm.bias", {dtype, {1000}}}});
}

template <typename T>
std::vector<T> values(const RandomTensorSource& from, std::string_view name) {
  size_t count = 1;
  auto type = from.find(name);
  REQUIRE(type.has_value());
  for (Dim dim : type->dims) count *= static_cast<size_t>(dim.constant());
  std::vector<T> result(count);
  REQUIRE(from.read(name, std::as_writable_bytes(std::span(result))));
  return result;
}

/// IEEE half precision, normal numbers and zero.
float from_f16(uint16_t half) {
  const int exponent = half >> 10 & 31;
  if ((half & 0x7FFF) == 0) return 0;
  REQUIRE(exponent != 0);
  REQUIRE(exponent != 31);
  const float magnitude = std::ldexp(static_cast<float>(1024 + (half & 1023)), exponent - 25);
  return half >> 15 ? -magnitude : magnitude;
}

}  // namespace

TEST_CASE("random_tensors: the bytes are fixed by seed and name") {
  const auto a = values<float>(source(7), "l0.q_proj.weight");
  CHECK(a == values<float>(source(7), "l0.q_proj.weight"));
  CHECK(a != values<float>(source(8), "l0.q_proj.weight"));
  CHECK(a != values<float>(source(7), "l1.q_proj.weight"));
  // Pinned: a change here changes every result that was computed with random weights.
  CHECK(a[0] == 42 * 0x1p-13f);
  CHECK(a[63999] == 101 * 0x1p-13f);
}

TEST_CASE("random_tensors: weights are near normal(0, 0.018)") {
  double sum = 0, squares = 0, largest = 0;
  const auto a = values<float>(source(1), "l0.q_proj.weight");
  for (float x : a) {
    sum += x;
    squares += static_cast<double>(x) * x;
    largest = std::max(largest, std::abs(static_cast<double>(x)));
  }
  const double count = static_cast<double>(a.size());
  CHECK(std::abs(sum / count) < 3e-4);
  CHECK(std::sqrt(squares / count) == doctest::Approx(0.018).epsilon(0.02));
  CHECK(largest <= 0.0625);
  CHECK(largest > 0.05);
}

TEST_CASE("random_tensors: neighbours and rows are not alike") {
  const auto a = values<float>(source(3), "l0.q_proj.weight");
  for (size_t distance : {1, 2, 3, 1000, 4096}) {
    double product = 0;
    for (size_t i = distance; i < a.size(); ++i)
      product += static_cast<double>(a[i]) * a[i - distance];
    CAPTURE(distance);
    CHECK(std::abs(product / static_cast<double>(a.size()) / (0.018 * 0.018)) < 0.02);
  }
}

TEST_CASE("random_tensors: norm weights lie around one, norm biases around zero") {
  for (const char* name : {"model.norm.weight", "ln_f.weight", "e.LayerNorm.gamma"})
    for (float x : values<float>(source(2), name)) {
      REQUIRE(x >= 0.9375f);
      REQUIRE(x <= 1.0625f);
    }
  for (float x : values<float>(source(2), "model.norm.bias")) REQUIRE(std::abs(x) <= 0.0625f);
}

TEST_CASE("random_tensors: f16 holds the f32 values, bf16 rounds them to nearest even") {
  for (const char* name : {"l0.q_proj.weight", "model.norm.weight"}) {
    const auto exact = values<float>(source(5), name);
    const auto half = values<uint16_t>(source(5, DType::f16), name);
    const auto brain = values<uint16_t>(source(5, DType::bf16), name);
    for (size_t i = 0; i < exact.size(); ++i) {
      REQUIRE(from_f16(half[i]) == exact[i]);
      const float rounded = std::bit_cast<float>(static_cast<uint32_t>(brain[i]) << 16);
      // One ulp of bf16 has 2^-7 of the value's power of two.
      const float ulp = std::ldexp(1.0f, exact[i] == 0 ? 0 : std::ilogb(exact[i]) - 7);
      const float error = std::abs(rounded - exact[i]);
      REQUIRE(error <= ulp / 2);
      if (error == ulp / 2) REQUIRE((brain[i] & 1) == 0);
    }
  }
}

TEST_CASE("random_tensors: truth values and integers are 0 or 1") {
  const auto flags = values<uint8_t>(source(5, DType::i1), "l0.q_proj.weight");
  size_t ones = 0;
  for (uint8_t flag : flags) {
    REQUIRE(flag <= 1);
    ones += flag;
  }
  CHECK(ones > flags.size() * 45 / 100);
  CHECK(ones < flags.size() * 55 / 100);
  for (int32_t x : values<int32_t>(source(5, DType::i32), "ln_f.weight"))
    REQUIRE((x == 0 || x == 1));
}

TEST_CASE("random_tensors: only listed names exist") {
  CHECK_FALSE(source(1).find("x"));
  check_error(source(1).read("x", {}), {"no tensor named \"x\""});
}

}  // namespace sinter::random_tensors_test
