// Numbers of constants and literals: integers are exact, and every type rounds a number once.
#include "ir/number.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "ir/scalar_math.h"
#include "ir/text.h"

namespace sinter::number_test {
namespace {

constexpr int64_t kLongs[] = {(int64_t{1} << 53) - 1,
                              int64_t{1} << 53,
                              (int64_t{1} << 53) + 1,
                              -(int64_t{1} << 53) + 1,
                              -(int64_t{1} << 53),
                              -(int64_t{1} << 53) - 1,
                              (int64_t{1} << 62) + 1,
                              -(int64_t{1} << 62) - 1,
                              INT64_MAX - 1,
                              INT64_MAX,
                              INT64_MIN,
                              INT64_MIN + 1,
                              7,
                              0};

Module module_with(std::string_view number, DType dtype) {
  const std::string text = fmt::format(
      "module @m {{ entry @e() -> (%a, %b) {{ %a = constant {{value = {0}}} : {1}[] "
      "%b = literal {{values = [1, {0}]}} : {1}[2] }} }}",
      number, to_string(dtype));
  Result<Module> module = parse_module(text, "numbers.sir");
  REQUIRE_MESSAGE(module.has_value(), (module ? std::string() : module.error().message()));
  return std::move(*module);
}

/// The number that a text gives a constant of the type. A literal has the same, and the printed
/// form too.
Number read(std::string_view number, DType dtype = DType::f32) {
  const Module module = module_with(number, dtype);
  const auto& ops = module.entries[0].graph.ops();
  const Number result = ops[0].attrs.get<Number>(AttrName::value);
  CHECK(ops[1].attrs.get<std::vector<Number>>(AttrName::values)[1] == result);
  const std::string text = print_module(module);
  Result<Module> again = parse_module(text, "printed.sir");
  REQUIRE(again.has_value());
  CHECK(again->entries[0].graph.ops()[0].attrs == ops[0].attrs);
  CHECK(again->entries[0].graph.ops()[1].attrs == ops[1].attrs);
  CHECK(print_module(*again) == text);
  return result;
}

TEST_CASE("an integer of i64 is exact from the text and back") {
  for (const int64_t integer : kLongs) {
    CAPTURE(integer);
    const Number number = read(fmt::format("{}", integer), DType::i64);
    CHECK(number.to_i64() == integer);
    CHECK(number == Number(integer));
  }
  CHECK(print_module(module_with("9007199254740993", DType::i64))
            .find("{value = 9007199254740993}") != std::string::npos);
  CHECK(print_module(module_with("9007199254740992", DType::i64)).find("{value = 0x1p+53}") !=
        std::string::npos);
  CHECK(print_module(module_with("-9223372036854775808", DType::i64)).find("{value = -0x1p+63}") !=
        std::string::npos);
}

TEST_CASE("beyond i64 an integer is the nearest that the type has") {
  CHECK(read("9223372036854775808", DType::i64).to_i64() == INT64_MAX);
  CHECK(read("-9223372036854775809", DType::i64).to_i64() == INT64_MIN);
  CHECK(read("100000000000000000000000", DType::i64).to_i64() == INT64_MAX);
  CHECK(read("1e30", DType::i64).to_i64() == INT64_MAX);
  // With a point or an exponent it is a double.
  CHECK(read("9007199254740993.0", DType::i64).to_i64() == int64_t{1} << 53);
}

TEST_CASE("a number is equal to itself alone") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(Number(nan) == Number(nan));
  CHECK_FALSE(Number(0.0) == Number(-0.0));
  CHECK(Number(3) == Number(3.0));
  CHECK_FALSE(Number((int64_t{1} << 53) + 1) == Number(0x1p53));
  CHECK_FALSE(Number(INT64_MAX) == Number(0x1p63));
  CHECK(std::signbit(read("-0").to_double()));
  CHECK_FALSE(std::signbit(read("0").to_double()));
}

TEST_CASE("every type rounds a number once") {
  CHECK(Number(2.5).to_i32() == 2);
  CHECK(Number(int64_t{1} << 40).to_i32() == INT32_MAX);
  CHECK(Number(INT64_MIN).to_i32() == INT32_MIN);
  CHECK(Number(INT64_MIN + 1).to_i32() == INT32_MIN);
  CHECK(Number(std::numeric_limits<double>::quiet_NaN()).to_i64() == 0);
  CHECK(Number(INT64_MAX).to_i1());
  CHECK(Number(std::numeric_limits<double>::quiet_NaN()).to_i1());
  CHECK_FALSE(Number(-0.0).to_i1());
  CHECK(Number(INT64_MAX).to_double() == 0x1p63);
  // A tie of f32 with one more: the nearest double is the tie, which would go to even.
  const int64_t tie = (int64_t{1} << 60) + (int64_t{1} << 36);
  CHECK(Number(tie).to_float(DType::f32) == 0x1p60f);
  CHECK(Number(tie + 1).to_float(DType::f32) == 0x1.000002p60f);
  CHECK(Number(-tie - 1).to_float(DType::f32) == -0x1.000002p60f);
  CHECK(Number((int64_t{1} << 60) + (int64_t{1} << 52) + 1).to_float(DType::bf16) == 0x1.02p60f);
  CHECK(Number(tie + 1).to_float(DType::f16) == math::infinity());
  // The nearest float of these doubles is a tie of the 16-bit types.
  CHECK(Number(1 + 0x1p-11 + 0x1p-40).to_float(DType::f16) == 1 + 0x1p-10f);
  CHECK(Number(1 + 0x1p-8 + 0x1p-40).to_float(DType::bf16) == 1 + 0x1p-7f);
}

TEST_CASE("a decimal number beside a tie goes to its own side") {
  // 1 + 2^-24 is the tie between 1 and the next f32.
  CHECK(read("1.000000059604644775390625").to_float(DType::f32) == 1.0f);
  CHECK(read("1.0000000596046447753906250").to_double() == 1 + 0x1p-24);
  CHECK(read("1.000000059604644775390625000000000000001").to_float(DType::f32) == 1 + 0x1p-23f);
  CHECK(read("-1.000000059604644775390625000000000000001").to_float(DType::f32) == -1 - 0x1p-23f);
  CHECK(read("10000000596046447753906250000000000000.1e-37").to_float(DType::f32) == 1 + 0x1p-23f);
  // 1 + 3 2^-24 is one whose even neighbour is above.
  CHECK(read("1.000000178813934326171875").to_float(DType::f32) == 1 + 0x1p-22f);
  CHECK(read("1.000000178813934326171874999999999999999").to_float(DType::f32) == 1 + 0x1p-23f);
  CHECK(read("0x1.0000030p0").to_float(DType::f32) == 1 + 0x1p-22f);
  CHECK(read("0x1.000002fffffffffffffffp0").to_float(DType::f32) == 1 + 0x1p-23f);
  CHECK(read("0x1.0000010000000000000001p0").to_float(DType::f32) == 1 + 0x1p-23f);
  CHECK(read("0x100.00010000000000000001p-8").to_float(DType::f32) == 1 + 0x1p-23f);
  // Ties of 16-bit types, of subnormal numbers, at the largest number, and of integers.
  CHECK(read("1.00048828125000000000000000001", DType::f16).to_float(DType::f16) == 1 + 0x1p-10f);
  CHECK(read("1.00390625000000000000000000001", DType::bf16).to_float(DType::bf16) == 1 + 0x1p-7f);
  CHECK(read("0.0000000298023223876953125").to_float(DType::f16) == 0);
  CHECK(read("0.0000000298023223876953125000000000000001").to_float(DType::f16) == 0x1p-24f);
  CHECK(read("65520", DType::f16).to_float(DType::f16) == math::infinity());
  CHECK(read("65519.99999999999999999999999", DType::f16).to_float(DType::f16) == 65504);
  CHECK(read("2.50000000000000000000000000001", DType::i64).to_i64() == 3);
  CHECK(read("3.49999999999999999999999999999", DType::i32).to_i32() == 3);
  // 2^-150 in full, and one less in its last digit: a tie of the least f32 with 0.
  const std::string least = fmt::format("{:.150f}", 0x1p-150);
  CHECK(read(least).to_float(DType::f32) == 0);
  CHECK(read(least + "1").to_float(DType::f32) == 0x1p-149f);
  // 2^64 + 2^40 + 1.
  CHECK(read("18446745173221179392").to_float(DType::f32) == 0x1p64f);
  CHECK(read("18446745173221179393").to_float(DType::f32) == 0x1.000002p64f);
}

TEST_CASE("away from ties a decimal number is the nearest double") {
  for (const char* text : {"0.1", "1e-5", "0.30000001192092896", "3.4028235e38", "1e300", "0.5",
                           "2.5", "5e-324", "1.7976931348623157e308"})
    CHECK(read(text).to_double() == std::strtod(text, nullptr));
}

}  // namespace
}  // namespace sinter::number_test
