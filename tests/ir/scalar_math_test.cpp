// Accuracy of scalar_math.h. Every 997th float by default; all 2^32 with SINTER_EXHAUSTIVE=1, which
// measured these maxima, in ulp, against the host's double functions:
//   exp 0.8913, exp_neg_abs 1.1308, log 0.9338, tanh 1.5609, erf 1.4892, sin 1.5356, cos 1.5331,
//   rsqrt 0.5000, expm1 1.9621, log1p 1.3639, atan 1.4794
#include "ir/scalar_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <limits>

namespace sinter::scalar_math_test {
namespace {

uint32_t stride() {
  const char* all = std::getenv("SINTER_EXHAUSTIVE");
  return all != nullptr && *all == '1' ? 1 : 997;
}

/// Distance of neighbouring floats at `x`.
double ulp(double x) {
  int exponent = 0;
  std::frexp(x, &exponent);
  return std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// Largest error in ulp of `function`; special values must be right exactly.
double largest_error(const char* name, float (*function)(float), double (*reference)(double)) {
  double largest = 0;
  float where = 0;
  uint64_t wrong = 0;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += stride()) {
    const float x = math::bits_float(static_cast<uint32_t>(bits));
    const float result = function(x);
    const double exact = reference(x);
    if (std::isnan(exact) || std::isnan(result)) {
      wrong += std::isnan(exact) != std::isnan(result);
    } else if (std::isinf(result)) {
      wrong += std::abs(exact) < 0x1.ffffffp127 || (exact > 0) != (result > 0);
    } else if (result == 0 && std::signbit(result) != std::signbit(exact)) {
      ++wrong;
    } else if (const double error = std::abs(result - exact) / ulp(exact); error > largest) {
      largest = error;
      where = x;
    }
  }
  std::printf("%s: %.4f ulp at %a\n", name, largest, static_cast<double>(where));
  CHECK_MESSAGE(wrong == 0, name);
  return largest;
}

TEST_CASE("functions are within 2 ulp for all arguments") {
  CHECK(largest_error("exp_neg_abs", math::exp_neg_abs,
                      [](double x) { return std::exp(-std::fabs(x)); }) <= 2.0);
  CHECK(largest_error("rsqrt", math::rsqrt, [](double x) { return 1 / std::sqrt(x); }) <= 0.501);
  // The errors of e^x, of the sum, of the reciprocal and of the product.
  CHECK(largest_error("sigmoid", math::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }) <=
        3.0);
#define SINTER_MEASURE(name)                              \
  CHECK(largest_error(                                    \
            #name, [](float x) { return math::name(x); }, \
            [](double x) { return std::name(x); }) <= 2.0);
  SINTER_MEASURE(exp)
  SINTER_MEASURE(log)
  SINTER_MEASURE(expm1)
  SINTER_MEASURE(log1p)
  SINTER_MEASURE(floor)
  SINTER_MEASURE(tanh)
  SINTER_MEASURE(erf)
  SINTER_MEASURE(sin)
  SINTER_MEASURE(cos)
  SINTER_MEASURE(atan)
#undef SINTER_MEASURE
}

TEST_CASE("pow is within 0.51 ulp, and has the special cases of C") {
  uint64_t state = 1;
  const auto next = [&] {
    return static_cast<uint32_t>((state = state * 6364136223846793005u + 1442695040888963407u) >>
                                 32);
  };
  double largest = 0;
  const auto check = [&](float a, float b) {
    const double exact = std::pow(static_cast<double>(a), static_cast<double>(b));
    const float result = math::pow(a, b);
    CAPTURE(a);
    CAPTURE(b);
    if (std::isnan(exact) || std::isnan(result)) {
      CHECK(std::isnan(exact) == std::isnan(result));
    } else if (std::isinf(result) || std::isinf(static_cast<float>(exact)) || exact == 0) {
      CHECK(result == static_cast<float>(exact));
    } else {
      largest = std::max(largest, std::abs(result - exact) / ulp(exact));
    }
    if (!std::isnan(exact)) CHECK(std::signbit(exact) == std::signbit(result));
  };
  for (int i = 0; i < 300000; ++i) {
    const float a = math::bits_float(next());
    check(a, math::bits_float(next()));
    check(a, static_cast<float>(static_cast<int>(next() % 65) - 32));
    // A result of any size, of any base and of one near 1.
    for (const float base : {a, 0.7f + static_cast<float>(next()) * 0x1.333334p-33f}) {
      const double log = std::log(std::fabs(static_cast<double>(base)));
      check(base, static_cast<float>(static_cast<int32_t>(next()) * 0x1p-31 * 100 / log));
    }
  }
  const float inf = math::infinity(), nan = math::nan();
  for (float a :
       {0.0f,  -0.0f, 1.0f,  -1.0f, inf,   -inf,  nan,    2.0f,    -2.0f,       0.5f,
        -0.5f, 3.0f,  -3.0f, 1.5f,  -1.5f, 1e38f, 1e-45f, -1e-45f, 16777216.0f, -16777215.0f})
    for (float b : {0.0f,  -0.0f,  1.0f,        -1.0f,       inf,          -inf,  nan,
                    2.0f,  -2.0f,  0.5f,        -0.5f,       3.0f,         -3.0f, 2.5f,
                    1e10f, -1e10f, 16777216.0f, 16777215.0f, -16777215.0f, 1e-45f})
      check(a, b);
  CHECK(largest < 0.51);
  CHECK(math::pow(3.0f, 13.0f) == 1594323.0f);
  CHECK(math::pow(-2.0f, -149.0f) == -0x1p-149f);
}

TEST_CASE("rounding to whole numbers: ties to even, zeros keep their sign") {
  const float values[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 8388607.5f, -0.0f};
  const float rounded[] = {0.0f, 2.0f, 2.0f, -0.0f, -2.0f, 0.0f, 8388608.0f, -0.0f};
  for (size_t i = 0; i < std::size(values); ++i)
    CHECK(math::float_bits(math::round(values[i])) == math::float_bits(rounded[i]));
  CHECK(math::floor(-0.5f) == -1);
  CHECK(math::float_bits(math::floor(-0.0f)) == 0x80000000u);
  CHECK(std::isnan(math::floor(math::nan())));
  CHECK(math::round(-math::infinity()) == -math::infinity());
}

TEST_CASE("floats become integers towards zero, or the last number") {
  CHECK(math::float_to_i32(-2.9f) == -2);
  CHECK(math::float_to_i32(2147483648.0f) == std::numeric_limits<int>::max());
  CHECK(math::float_to_i32(-2147483648.0f) == std::numeric_limits<int>::min());
  CHECK(math::float_to_i32(-math::infinity()) == std::numeric_limits<int>::min());
  CHECK(math::float_to_i32(math::nan()) == 0);
  CHECK(math::float_to_i64(0x1.fffffep62f) == 0x1.fffffep62);
  CHECK(math::float_to_i64(0x1p63f) == std::numeric_limits<int64_t>::max());
  CHECK(math::float_to_i64(-1e30f) == std::numeric_limits<int64_t>::min());
  CHECK(math::float_to_i64(math::nan()) == 0);
  CHECK(math::i64_to_i32(int64_t{1} << 31) == std::numeric_limits<int>::max());
  CHECK(math::i64_to_i32(-(int64_t{1} << 31) - 1) == std::numeric_limits<int>::min());
  CHECK(math::i64_to_i32(-5) == -5);
}

TEST_CASE("zeros, infinities and NaN") {
  const float inf = math::infinity();
  for (float zero : {0.0f, -0.0f}) {
    CHECK(math::exp(zero) == 1);
    CHECK(math::log(zero) == -inf);
    CHECK(math::cos(zero) == 1);
    CHECK(math::float_bits(math::tanh(zero)) == math::float_bits(zero));
    CHECK(math::float_bits(math::expm1(zero)) == math::float_bits(zero));
    CHECK(math::float_bits(math::log1p(zero)) == math::float_bits(zero));
    CHECK(math::float_bits(math::erf(zero)) == math::float_bits(zero));
    CHECK(math::float_bits(math::sin(zero)) == math::float_bits(zero));
    CHECK(math::float_bits(math::atan(zero)) == math::float_bits(zero));
    CHECK(math::float_bits(math::sqrt(zero)) == math::float_bits(zero));
  }
  CHECK(math::exp(inf) == inf);
  CHECK(math::exp(-inf) == 0);
  for (float x : {inf, -inf}) CHECK(math::exp_neg_abs(x) == 0);
  CHECK(math::sigmoid(inf) == 1);
  CHECK(math::float_bits(math::sigmoid(-inf)) == 0);
  CHECK(math::rsqrt(0.0f) == inf);
  CHECK(math::rsqrt(inf) == 0);
  CHECK(math::float_bits(math::minus_zero()) == 0x80000000u);
  CHECK(math::log(inf) == inf);
  CHECK(math::tanh(-inf) == -1);
  CHECK(math::expm1(-inf) == -1);
  CHECK(math::expm1(inf) == inf);
  CHECK(math::log1p(-1.0f) == -inf);
  CHECK(math::log1p(inf) == inf);
  CHECK(std::isnan(math::log1p(-1.5f)));
  CHECK(std::isnan(math::expm1(math::nan())));
  CHECK(std::isnan(math::log1p(math::nan())));
  CHECK(math::erf(-inf) == -1);
  for (float sign : {1.0f, -1.0f}) CHECK(math::atan(sign * inf) == sign * 0x1.921fb6p+0f);
  for (float undefined :
       {math::log(-inf), math::log(-1.0f), math::sin(inf), math::cos(-inf), math::sqrt(-1.0f),
        math::exp(math::nan()), math::log(math::nan()), math::tanh(math::nan()),
        math::exp_neg_abs(math::nan()), math::sigmoid(math::nan()), math::rsqrt(-1.0f),
        math::erf(math::nan()), math::sin(math::nan()), math::atan(math::nan())})
    CHECK(std::isnan(undefined));
}

TEST_CASE("sin and cos at the floats nearest to multiples of pi/2") {
  // The last is the nearest of all: 16367173 * 2^72, 1.6e-9 from a multiple.
  constexpr float kNearest[] = {0x1.921fb6p+0f, 0x1.921fb6p+1f, 0x1.f37c8ap+95f};
  for (float x : kNearest) {
    const double sin = std::sin(static_cast<double>(x)), cos = std::cos(static_cast<double>(x));
    CHECK(std::abs(math::sin(x) - sin) <= 2 * ulp(sin));
    CHECK(std::abs(math::cos(x) - cos) <= 2 * ulp(cos));
  }
}

TEST_CASE("maximum and minimum: NaN wins, -0 < +0, bitwise commutative") {
  const float inf = math::infinity(), nan = math::nan();
  const float values[] = {0.0f, -0.0f, 1.0f, -1.0f, inf, -inf, nan, -nan, 0x1p-149f, -0x1p-149f};
  for (float a : values)
    for (float b : values) {
      const float high = math::maximum(a, b), low = math::minimum(a, b);
      if (std::isnan(a) || std::isnan(b)) {
        CHECK(std::isnan(high));
        CHECK(std::isnan(low));
        continue;
      }
      CHECK(math::float_bits(high) == math::float_bits(math::maximum(b, a)));
      CHECK(math::float_bits(low) == math::float_bits(math::minimum(b, a)));
      CHECK(high == std::fmax(a, b));
      CHECK(low == std::fmin(a, b));
    }
  CHECK_FALSE(std::signbit(math::maximum(0.0f, -0.0f)));
  CHECK(std::signbit(math::minimum(0.0f, -0.0f)));
}

TEST_CASE("int32 wraps around") {
  constexpr int low = std::numeric_limits<int>::min(), high = std::numeric_limits<int>::max();
  CHECK(math::add(high, 1) == low);
  CHECK(math::sub(low, 1) == high);
  CHECK(math::mul(high, 2) == -2);
  CHECK(math::maximum(low, high) == high);
  CHECK(math::minimum(low, high) == low);
}

/// Value of a 16-bit float with `exponent_bits`, by its definition.
double decode(uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value;
  if (exponent == (1 << exponent_bits) - 1)
    value = fraction ? std::numeric_limits<double>::quiet_NaN()
                     : std::numeric_limits<double>::infinity();
  else if (exponent == 0)
    value = std::ldexp(fraction, 1 - bias - fraction_bits);
  else
    value = std::ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return bits & 0x8000 ? -value : value;
}

/// Both ways for all 65536 values; and between neighbours below, at and above the midpoint, from a
/// float and, closer than a float can tell, from a double.
void check_storage(int exponent_bits, float (*widen)(uint16_t), uint16_t (*round)(float),
                   uint16_t (*round_double)(double)) {
  int wrong = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const double value = decode(bits, exponent_bits);
    if (std::isnan(value)) {
      wrong += !std::isnan(widen(bits)) || !std::isnan(decode(round(widen(bits)), exponent_bits));
      continue;
    }
    wrong += widen(bits) != value || round(static_cast<float>(value)) != bits ||
             round_double(value) != bits;
    if (std::isinf(value)) continue;
    const uint16_t next = static_cast<uint16_t>(bits + 1);  // away from zero
    double above = decode(next, exponent_bits);
    // The largest finite value rounds to infinity from half a unit on.
    if (std::isinf(above))
      above = value + (value - decode(static_cast<uint16_t>(bits - 1), exponent_bits));
    const double midpoint = value + (above - value) / 2;
    const float middle = static_cast<float>(midpoint);
    wrong += middle != midpoint;
    wrong += round(middle) != (bits & 1 ? next : bits);
    wrong += round(std::nextafterf(middle, 0.0f)) != bits;
    wrong += round(std::nextafterf(middle, middle * INFINITY)) != next;
    wrong += round_double(std::nextafter(midpoint, 0.0)) != bits;
    wrong += round_double(std::nextafter(midpoint, midpoint * INFINITY)) != next;
  }
  CHECK(wrong == 0);
}

TEST_CASE("f16: all values both ways, rounding at every midpoint") {
  check_storage(
      5, [](uint16_t h) { return math::f16_to_float(h); },
      [](float x) { return math::float_to_f16(x); },
      [](double x) { return math::double_to_f16(x); });
  CHECK(math::float_to_f16(65519.996f) == 0x7bff);
  CHECK(math::float_to_f16(65520.0f) == 0x7c00);
  CHECK(math::float_to_f16(-1e30f) == 0xfc00);
  CHECK(math::double_to_f16(1e300) == 0x7c00);
  CHECK(math::double_to_f16(1e-300) == 0);
}

TEST_CASE("bf16: all values both ways, rounding at every midpoint") {
  check_storage(
      8, [](uint16_t h) { return math::bf16_to_float(h); },
      [](float x) { return math::float_to_bf16(x); },
      [](double x) { return math::double_to_bf16(x); });
  CHECK(math::double_to_bf16(-1e300) == 0xff80);
}

TEST_CASE("i32 to 16-bit floats rounds once") {
  // 2^24 + 2^16 is a tie of bf16; 1 more is above it, though not as a float.
  CHECK(math::i32_to_bf16((1 << 24) + (1 << 16)) == 0x4b80);
  CHECK(math::i32_to_bf16((1 << 24) + (1 << 16) + 1) == 0x4b81);
  CHECK(math::i32_to_bf16(-(1 << 24) - (1 << 16) - 1) == 0xcb81);
  CHECK(math::i32_to_bf16(std::numeric_limits<int>::min()) == 0xcf00);
  CHECK(math::i32_to_bf16(std::numeric_limits<int>::max()) == 0x4f00);
  CHECK(math::i32_to_f16(2049) == 0x6800);
  CHECK(math::i32_to_f16(std::numeric_limits<int>::max()) == 0x7c00);
  int wrong = 0;
  for (int64_t x = std::numeric_limits<int>::min(); x <= std::numeric_limits<int>::max(); x += 4999)
    wrong += math::i32_to_bf16(static_cast<int>(x)) != math::double_to_bf16(static_cast<double>(x));
  CHECK(wrong == 0);
}

TEST_CASE("i64 to bf16 rounds once") {
  constexpr int64_t kTie = (int64_t{1} << 40) + (int64_t{1} << 32);
  CHECK(math::i64_to_bf16(kTie) == math::double_to_bf16(0x1p40));
  CHECK(math::i64_to_bf16(kTie + 1) == math::double_to_bf16(0x1.02p40));
  CHECK(math::i64_to_bf16(-kTie - 1) == math::double_to_bf16(-0x1.02p40));
  CHECK(math::i64_to_bf16(std::numeric_limits<int64_t>::min()) == math::double_to_bf16(-0x1p63));
  CHECK(math::i64_to_bf16(std::numeric_limits<int64_t>::max()) == math::double_to_bf16(0x1p63));
  // Numbers that a double has exactly.
  int wrong = 0;
  for (uint64_t i = 0, x = 1; i < 100000;
       ++i, x = x * 6364136223846793005u + 1442695040888963407u) {
    const auto number = static_cast<int64_t>(x) >> 11 << (i % 11);
    wrong += math::i64_to_bf16(number) != math::double_to_bf16(static_cast<double>(number));
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace sinter::scalar_math_test
