// Elementwise ops and composites against their definition in float64.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <map>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"

namespace sinter {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

struct Case {
  double low, high;  // of the operands
  std::function<double(double, double)> function;
};

const std::map<std::string, Case>& cases() {
  static const std::map<std::string, Case> table = {
      {"neg", {-9, 9, [](double a, double) { return -a; }}},
      {"abs", {-9, 9, [](double a, double) { return std::abs(a); }}},
      {"floor", {-9, 9, [](double a, double) { return std::floor(a); }}},
      {"round", {-9, 9, [](double a, double) { return std::nearbyint(a); }}},
      {"expm1", {-9, 9, [](double a, double) { return std::expm1(a); }}},
      {"log1p", {-0.99, 9, [](double a, double) { return std::log1p(a); }}},
      {"pow", {0.1, 3, [](double a, double b) { return std::pow(a, b); }}},
      {"div_floor", {-9, 9, [](double a, double b) { return b == 0 ? 0 : std::floor(a / b); }}},
      {"mod_floor",
       {-9, 9, [](double a, double b) { return b == 0 ? a : a - b * std::floor(a / b); }}},
      {"exp", {-9, 9, [](double a, double) { return std::exp(a); }}},
      {"exp_neg_abs", {-9, 9, [](double a, double) { return std::exp(-std::abs(a)); }}},
      {"sigmoid", {-9, 9, [](double a, double) { return 1 / (1 + std::exp(-a)); }}},
      {"log", {0.01, 9, [](double a, double) { return std::log(a); }}},
      {"sqrt", {0, 9, [](double a, double) { return std::sqrt(a); }}},
      {"rsqrt", {0.01, 9, [](double a, double) { return 1 / std::sqrt(a); }}},
      {"tanh", {-4, 4, [](double a, double) { return std::tanh(a); }}},
      {"erf", {-4, 4, [](double a, double) { return std::erf(a); }}},
      {"sin", {-99, 99, [](double a, double) { return std::sin(a); }}},
      {"cos", {-99, 99, [](double a, double) { return std::cos(a); }}},
      {"add", {-9, 9, [](double a, double b) { return a + b; }}},
      {"sub", {-9, 9, [](double a, double b) { return a - b; }}},
      {"mul", {-9, 9, [](double a, double b) { return a * b; }}},
      {"div", {1, 9, [](double a, double b) { return a / b; }}},
      {"maximum", {-9, 9, [](double a, double b) { return std::max(a, b); }}},
      {"minimum", {-9, 9, [](double a, double b) { return std::min(a, b); }}},
      {"less", {-3, 3, [](double a, double b) { return a < b; }}},
      {"less_equal", {-3, 3, [](double a, double b) { return a <= b; }}},
      {"equal", {-3, 3, [](double a, double b) { return a == b; }}},
      {"logical_and", {0, 2, [](double a, double b) { return a != 0 && b != 0; }}},
      {"logical_or", {0, 2, [](double a, double b) { return a != 0 || b != 0; }}},
      {"logical_not", {0, 2, [](double a, double) { return a == 0; }}},
  };
  return table;
}

/// a of shape [5, 1, 131] and b of [7, 131], seen through a transpose, give [5, 7, 131].
void check_op(OpKind kind, DType dtype) {
  const OpInfo& info = op_info(kind);
  CAPTURE(info.name);
  CAPTURE(to_string(dtype));
  const auto found = cases().find(std::string(info.name));
  REQUIRE(found != cases().end());
  const Case& test = found->second;
  const DType result_type = info.result == OpInfo::Result::truth ? DType::i1 : dtype;
  const std::string_view type = to_string(dtype);
  const Module module =
      module_of(fmt::format("%a: {0}[5, 1, 131], %b: {0}[131, 7]", type),
                fmt::format("%t = transpose %b {{axes = [1, 0]}} : {0}[7, 131]\n"
                            "%y = {1} %a{2} : {3}[5, {4}, 131]",
                            type, info.name, info.min_operands == 2 ? ", %t" : "",
                            to_string(result_type), info.min_operands == 2 ? 7 : 1));
  const HostTensor a = random_tensor(dtype, {5, 1, 131}, test.low, test.high, 1);
  const HostTensor b = random_tensor(dtype, {131, 7}, test.low, test.high, 2);
  const std::vector<double> as = values_of(a), bs = values_of(b);
  const std::vector<double> got = values_of(evaluated(module, {a, b}));
  const std::vector<double> precise =
      values_of(evaluated(module, {a, b}, {0, 0}, {.precise = true}));
  const int64_t repeats = info.min_operands == 2 ? 7 : 1;
  int wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
    const int64_t column = i % 131, row = i / 131;
    const double expected =
        test.function(as[row / repeats * 131 + column], bs[column * 7 + row % repeats]);
    if (is_float(result_type)) {
      wrong +=
          std::abs(got[i] - expected) > (dtype == DType::f32 ? 2.5 : 0.51) * ulp(dtype, expected);
      wrong += std::abs(precise[i] - expected) > ulp(DType::f32, expected);
    } else {
      wrong += got[i] != expected || precise[i] != expected;
    }
  }
  CHECK(wrong == 0);
}

std::vector<DType> types_of(OpInfo::Domain domain) {
  switch (domain) {
    case OpInfo::Domain::truth:
      return {DType::i1};
    case OpInfo::Domain::integer:
      return {DType::i32, DType::i64};
    case OpInfo::Domain::real:
      return {DType::f32, DType::f16, DType::bf16};
    case OpInfo::Domain::number:
      return {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64};
  }
  SINTER_CHECK(false, "domain");
}

TEST_CASE("every elementwise op, in every type of its domain") {
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula) \
  for (DType dtype : types_of(OpInfo::Domain::domain)) check_op(OpKind::name, dtype);
#include "ir/ops.def"
}

TEST_CASE("where, in every type") {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::i1}) {
    const std::string_view type = to_string(dtype);
    const Module module =
        module_of(fmt::format("%c: i1[3, 1], %a: {0}[700], %b: {0}[3, 700]", type),
                  fmt::format("%y = where %c, %a, %b : {}[3, 700]", type));
    const HostTensor c = tensor(DType::i1, {3, 1}, {1, 0, 1});
    const HostTensor a = random_tensor(dtype, {700}, 0, 2, 3);
    const HostTensor b = random_tensor(dtype, {3, 700}, 0, 2, 4);
    const std::vector<double> as = values_of(a), bs = values_of(b);
    for (bool precise : {false, true}) {
      const std::vector<double> got =
          values_of(evaluated(module, {c, a, b}, {0, 0}, {.precise = precise}));
      int wrong = 0;
      for (size_t i = 0; i < got.size(); ++i)
        wrong += got[i] != (i / 700 == 1 ? bs[i] : as[i % 700]);
      CHECK(wrong == 0);
    }
  }
}

using V = std::vector<double>;

HostTensor converted(const HostTensor& x, DType to, bool precise = false) {
  return evaluated(module_of(fmt::format("%x: {}[{}]", to_string(x.dtype), x.volume()),
                             fmt::format("%y = cast %x : {}[{}]", to_string(to), x.volume())),
                   {x}, {0, 0}, {.precise = precise});
}

V cast(DType from, DType to, const V& values, bool precise = false) {
  return values_of(
      converted(tensor(from, {static_cast<int64_t>(values.size())}, values), to, precise));
}

TEST_CASE("cast to a float type rounds once") {
  CHECK(cast(DType::f32, DType::f16,
             {1 + 0x1p-11, 1 + 0x3p-11, 65519, 65520, 0x1p-25, 0x1.8p-25, -0.0}) ==
        V{1, 1 + 0x1p-9, 65504, INFINITY, 0, 0x1p-24, 0});
  CHECK(cast(DType::f32, DType::bf16, {1 + 0x1p-8, 1 + 0x3p-8, 3.4e38}) ==
        V{1, 1 + 0x1p-6, INFINITY});
  CHECK(cast(DType::f16, DType::f32, {0x1p-24, 65504}) == V{0x1p-24, 65504});
  CHECK(cast(DType::bf16, DType::f16, {1e30, 0x1p-24}) == V{INFINITY, 0x1p-24});
  CHECK(cast(DType::i32, DType::f32, {-7, 16777217, 2147483647}) == V{-7, 16777216, 2147483648.0});
  CHECK(cast(DType::i32, DType::bf16, {16842753}) == V{16908288});  // through f32: 16777216
  CHECK(cast(DType::i32, DType::f16, {2049, 100000}) == V{2048, INFINITY});
  CHECK(cast(DType::i1, DType::bf16, {0, 1}) == V{0, 1});
  CHECK(cast(DType::i32, DType::i32, {5}) == V{5});
  CHECK(cast(DType::i64, DType::f32, {-7, 16777217, 0x1p62}) == V{-7, 16777216, 0x1p62});
  CHECK(cast(DType::i64, DType::f16, {2049, 0x1p40}) == V{2048, INFINITY});
  // A tie of bf16 and one more than it, which a float cannot tell from the tie.
  CHECK(cast(DType::i64, DType::bf16, {0x1.01p40, 0x1.01p40 + 1, -0x1.01p40 - 1}) ==
        V{0x1p40, 0x1.02p40, -0x1.02p40});
}

TEST_CASE("cast from a float type to an integer goes towards zero, and ends at the last number") {
  for (bool precise : {false, true}) {
    const auto to = [&](DType from, DType type, const V& values) {
      return cast(from, type, values, precise);
    };
    const V values = {2.7, -2.7, -0.9, -0.0, NAN, INFINITY, -INFINITY};
    for (DType from : kFloats) {
      CHECK(to(from, DType::i32, values) == V{2, -2, 0, 0, 0, 2147483647, -2147483648.0});
      // As doubles the last numbers of i64 are powers of two.
      CHECK(to(from, DType::i64, values) == V{2, -2, 0, 0, 0, 0x1p63, -0x1p63});
      CHECK(to(from, DType::i1, {0, -0.0, 0.25, NAN, INFINITY, -1}) == V{0, 0, 1, 1, 1, 1});
    }
    CHECK(to(DType::f32, DType::i32, {2147483520, 2147483648.0, -2147483648.0, -3e9, 3e9}) ==
          V{2147483520, 2147483647, -2147483648.0, -2147483648.0, 2147483647});
    CHECK(to(DType::f32, DType::i64, {3e9, -3e9, 1e30, -1e30}) == V{3e9, -3e9, 0x1p63, -0x1p63});
  }
}

TEST_CASE("cast between integers keeps the number, or takes the nearest") {
  CHECK(cast(DType::i32, DType::i64, {-5, 2147483647}) == V{-5, 2147483647});
  CHECK(cast(DType::i64, DType::i32, {-5, 2147483648.0, -2147483649.0, 0x1p62, -0x1p62}) ==
        V{-5, 2147483647, -2147483648.0, 2147483647, -2147483648.0});
  for (DType integer : {DType::i32, DType::i64}) {
    CHECK(cast(integer, DType::i1, {0, 2, -1}) == V{0, 1, 1});
    CHECK(cast(DType::i1, integer, {0, 1}) == V{0, 1});
  }
  HostTensor wide = tensor(DType::i64, {2}, {0, 0});
  wide.data<int64_t>()[0] = INT64_MAX;
  wide.data<int64_t>()[1] = (int64_t{1} << 53) + 1;  // no double
  const HostTensor same = converted(wide, DType::i64);
  CHECK(same.bytes == wide.bytes);
}

TEST_CASE("i64 wraps around, and no double stands in for it") {
  const auto apply = [](std::string_view op, int64_t a, int64_t b) {
    HostTensor x = tensor(DType::i64, {1}, {0}), y = x;
    x.data<int64_t>()[0] = a;
    y.data<int64_t>()[0] = b;
    const HostTensor result = evaluated(
        module_of("%a: i64[1], %b: i64[1]", fmt::format("%y = {} %a, %b : i64[1]", op)), {x, y});
    return result.data<int64_t>()[0];
  };
  constexpr int64_t kOdd = (int64_t{1} << 53) + 1;
  CHECK(apply("add", INT64_MAX, 1) == INT64_MIN);
  CHECK(apply("sub", INT64_MIN, 1) == INT64_MAX);
  CHECK(apply("mul", INT64_MAX, 2) == -2);
  CHECK(apply("add", kOdd, 0) == kOdd);
  CHECK(apply("maximum", kOdd, kOdd - 1) == kOdd);
  CHECK(apply("div_floor", kOdd, 1) == kOdd);
  CHECK(apply("div_floor", -7, 2) == -4);
  CHECK(apply("div_floor", INT64_MIN, -1) == INT64_MIN);
  CHECK(apply("mod_floor", -7, 2) == 1);
  CHECK(apply("mod_floor", 7, -2) == -1);
  CHECK(apply("mod_floor", INT64_MIN, -1) == 0);
  CHECK(apply("div_floor", 5, 0) == 0);
  CHECK(apply("mod_floor", 5, 0) == 5);
}

TEST_CASE("activations against their definition") {
  const std::map<std::string, double (*)(double)> functions = {
      {"silu", [](double x) { return x / (1 + std::exp(-x)); }},
      {"gelu", [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
      {"gelu_tanh",
       [](double x) {
         return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
       }},
      {"quick_gelu", [](double x) { return x / (1 + std::exp(-1.702 * x)); }},
      {"relu", [](double x) { return std::max(x, 0.0); }},
  };
  for (const auto& [name, function] : functions)
    for (DType dtype : kFloats) {
      CAPTURE(name);
      const Module module = module_of(fmt::format("%x: {}[1000]", to_string(dtype)),
                                      fmt::format("%y = {} %x : {}[1000]", name, to_string(dtype)));
      const HostTensor x = random_tensor(dtype, {1000}, -6, 6, 5);
      const std::vector<double> xs = values_of(x), got = values_of(evaluated(module, {x}));
      double error = 0;
      for (size_t i = 0; i < xs.size(); ++i) {
        // 1 + erf and 1 + tanh cancel: a few units of the intermediate 1, times x, stay.
        const double expected = function(xs[i]);
        error = std::max(error, (std::abs(got[i] - expected) - 4 * 0x1p-24 * std::abs(xs[i])) /
                                    ulp(dtype, expected));
      }
      CHECK(error <= (dtype == DType::f32 ? 4.0 : 0.51));
    }
}

TEST_CASE("a product is rounded before it is added") {
  // a * a = 1 + 2^-11 + 2^-24, which is a tie in float32; contracted, the sum would keep 2^-24.
  const Module module =
      module_of("%a: f32[1], %c: f32[1]", "%p = mul %a, %a : f32[1]\n%y = add %p, %c : f32[1]");
  const HostTensor a = tensor(DType::f32, {1}, {1 + 0x1p-12});
  const HostTensor c = tensor(DType::f32, {1}, {-1 - 0x1p-11});
  CHECK(values_of(evaluated(module, {a, c})) == std::vector<double>{0});
  CHECK(values_of(evaluated(module, {a, c}, {0, 0}, {.precise = true})) ==
        std::vector<double>{0x1p-24});
}

TEST_CASE("zeros, subnormals and NaN") {
  const auto apply = [](std::string_view op, DType dtype, double a, double b) {
    const std::string_view type = to_string(dtype);
    return values_of(evaluated(module_of(fmt::format("%a: {0}[1], %b: {0}[1]", type),
                                         fmt::format("%y = {} %a, %b : {}[1]", op, type)),
                               {tensor(dtype, {1}, {a}), tensor(dtype, {1}, {b})}))[0];
  };
  CHECK(std::signbit(apply("add", DType::f16, -0.0, -0.0)));
  CHECK_FALSE(std::signbit(apply("add", DType::f16, -0.0, 0.0)));
  CHECK_FALSE(std::signbit(apply("maximum", DType::f32, -0.0, 0.0)));
  CHECK(std::signbit(apply("minimum", DType::f32, 0.0, -0.0)));
  CHECK(std::isnan(apply("maximum", DType::f32, NAN, 1)));
  CHECK(std::isnan(apply("minimum", DType::bf16, 1, NAN)));
  CHECK(apply("mul", DType::f16, 0x1p-24, 0.5) == 0);  // a tie with zero
  CHECK(apply("mul", DType::f16, 0x1p-24, 0.75) == 0x1p-24);
  CHECK(apply("mul", DType::f32, 0x1p-149, 1.5) == 0x1p-148);  // a tie, to even
  CHECK(apply("add", DType::bf16, 0x1p-133, 0x1p-133) == 0x1p-132);
  // 1 + 2^-8 is a tie of bf16, to even; 2^-15 more is above it.
  CHECK(apply("add", DType::bf16, 1, 0x1p-8) == 1);
  CHECK(apply("add", DType::bf16, 1, 0x1.02p-8) == 1 + 0x1p-7);
}

}  // namespace
}  // namespace sinter
