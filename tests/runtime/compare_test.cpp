#include "runtime/compare.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/random_inputs.h"

namespace sinter::compare_test {
namespace {

HostTensor floats(std::vector<float> values) {
  HostTensor tensor = *make_tensor(DType::f32, {static_cast<int64_t>(values.size())});
  std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
  return tensor;
}
HostTensor halves(DType dtype, std::vector<uint16_t> bits) {
  HostTensor tensor = *make_tensor(dtype, {static_cast<int64_t>(bits.size())});
  std::memcpy(tensor.bytes.data(), bits.data(), tensor.bytes.size());
  return tensor;
}
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST_CASE("bits: NaNs are equal, zeros of different sign are not") {
  CHECK_FALSE(compare_bits(floats({1, -kNan}), floats({1, kNan}))->has_value());
  CHECK_FALSE(
      compare_bits(halves(DType::f16, {0x7c01}), halves(DType::f16, {0xfe00}))->has_value());
  CHECK_FALSE(
      compare_bits(halves(DType::bf16, {0x7f81}), halves(DType::bf16, {0xffc0}))->has_value());
  CHECK(compare_bits(halves(DType::f16, {0x7c00}), halves(DType::f16, {0x7c01}))->has_value());
  const auto zero = *compare_bits(floats({1, 0, 2}), floats({1, -0.0f, 3}));
  REQUIRE(zero);
  CHECK(zero->count == 2);
  CHECK(zero->index == 1);
  CHECK(to_string(*zero) == "2 of 3 elements differ, first 1: 0 (0x0) and -0 (0x80000000)");
  CHECK_FALSE(compare_bits(floats({1}), floats({1, 2})));
  CHECK_FALSE(compare_bits(halves(DType::f16, {0}), halves(DType::bf16, {0})));
}

TEST_CASE("distance in absolute value and in units of the last place") {
  const Distance d = *distance(floats({1, 100, -1}), floats({1.0f + 0x1p-22f, 101, -1}));
  CHECK(d.max_abs == 1);
  CHECK(d.max_abs_index == 1);
  CHECK(d.max_ulp == 131072);
  CHECK(d.max_ulp_index == 1);
  CHECK(distance(floats({1}), floats({1.0f + 0x1p-22f}))->max_ulp == 2);
  // Across zero: the smallest negative and positive numbers are two apart.
  CHECK(distance(halves(DType::f16, {0x0001}), halves(DType::f16, {0x8001}))->max_ulp == 2);
  CHECK(distance(floats({0}), floats({-0.0f}))->max_ulp == 0);
  CHECK(distance(floats({kNan}), floats({kNan}))->max_ulp == 0);
  CHECK(distance(floats({kNan}), floats({1}))->max_ulp == kInf);
  CHECK(distance(floats({kInf}), floats({kInf}))->max_abs == 0);
  CHECK(distance(floats({kInf}), floats({-kInf}))->max_abs == kInf);
  CHECK(distance(floats({kInf}), floats({3e38f}))->max_ulp == kInf);
}

TEST_CASE("accuracy against float64") {
  const std::vector<double> reference = {1, 2, 3, 4};
  const Accuracy a = *accuracy(floats({1, 2, 3, 4.5}), reference);
  CHECK(a.max == 0.5);
  CHECK(a.max_index == 3);
  CHECK(a.rms == 0.25);
  CHECK_FALSE(accuracy(floats({1}), reference));
  CHECK(accuracy(floats({1, 2, 3, kNan}), reference)->rms == kInf);
}

TEST_CASE("tolerance grows with the roundoff and the length of the sum") {
  CHECK(tolerance(DType::bf16, 64).relative > tolerance(DType::f16, 64).relative);
  CHECK(tolerance(DType::f16, 64).relative > tolerance(DType::f32, 64).relative);
  CHECK(tolerance(DType::f32, 4096).absolute > tolerance(DType::f32, 64).absolute);
  CHECK(tolerance(DType::i32, 4096).absolute == 0);
  const std::vector<double> reference = {1, 1000};
  const Tolerance t = tolerance(DType::f16, 1);
  CHECK_FALSE(exceeds(floats({1, 1000}), reference, t)->has_value());
  CHECK_FALSE(exceeds(floats({1, 1003}), reference, t)->has_value());
  const auto excess = *exceeds(floats({1, 1005}), reference, t);
  REQUIRE(excess);
  CHECK(excess->count == 1);
  CHECK(excess->index == 1);
  CHECK(excess->reference == 1000);
  CHECK(exceeds(floats({1, kNan}), reference, t)->has_value());
}

TEST_CASE("sums of float32 stay within the rule") {
  const int64_t n = 4096;
  const HostTensor x = *random_tensor(DType::f32, {n}, 5), y = *random_tensor(DType::f32, {n}, 6);
  float sum = 0;
  double exact = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += x.data<float>()[i] * y.data<float>()[i];
    exact += static_cast<double>(x.data<float>()[i]) * y.data<float>()[i];
  }
  CHECK_FALSE(
      exceeds(floats({sum}), std::vector<double>{exact}, tolerance(DType::f32, n))->has_value());
}

TEST_CASE("values as doubles") {
  CHECK(to_doubles(halves(DType::f16, {0x3c00, 0x0001})) == std::vector<double>{1, 0x1p-24});
  CHECK(to_doubles(halves(DType::bf16, {0xbf80})) == std::vector<double>{-1});
  HostTensor integers = *make_tensor(DType::i32, {1});
  *integers.data<int32_t>() = -7;
  CHECK(to_doubles(integers) == std::vector<double>{-7});
}

}  // namespace
}  // namespace sinter::compare_test
