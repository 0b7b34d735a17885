// Elementwise ops and composites against their definition in float64.
#include <doctest/doctest.h>
#include <llvm/ADT/STLExtras.h>

#include <cmath>
#include <map>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_elementwise_test {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

using Function = double (*)(double, double);

/// The float64 functions that the formulas of ops.def call; others are those of <cmath>.
namespace reference {

double neg(double a) { return -a; }
double abs(double a) { return std::abs(a); }
double round(double a) { return std::nearbyint(a); }
double exp_neg_abs(double a) { return std::exp(-std::abs(a)); }
double sigmoid(double a) { return 1 / (1 + std::exp(-a)); }
double rsqrt(double a) { return 1 / std::sqrt(a); }
double add(double a, double b) { return a + b; }
double sub(double a, double b) { return a - b; }
double mul(double a, double b) { return a * b; }
double div(double a, double b) { return a / b; }
double div_floor(double a, double b) { return b == 0 ? 0 : std::floor(a / b); }
double mod_floor(double a, double b) { return b == 0 ? a : a - b * std::floor(a / b); }
double bits(int64_t value) { return static_cast<double>(value); }
double bit_and(double a, double b) {
  return bits(static_cast<int64_t>(a) & static_cast<int64_t>(b));
}
double bit_or(double a, double b) {
  return bits(static_cast<int64_t>(a) | static_cast<int64_t>(b));
}
double bit_xor(double a, double b) {
  return bits(static_cast<int64_t>(a) ^ static_cast<int64_t>(b));
}
double shift_left(double a, double b) { return b < 0 ? 0 : a * std::exp2(b); }
double shift_right(double a, double b) {
  return b < 0 ? (a < 0 ? -1 : 0) : std::floor(a / std::exp2(b));
}
double maximum(double a, double b) { return std::max(a, b); }
double minimum(double a, double b) { return std::min(a, b); }

Function of(OpKind kind) {
  static constexpr std::pair<OpKind, Function> kFunctions[] = {
#define SINTER_ELEMENTWISE(name, operands, result, domain, formula, ...) \
  {OpKind::name, [](double a, [[maybe_unused]] double b) -> double { return formula; }},
#include "ir/ops.def"
  };
  return llvm::find_if(kFunctions, [&](const auto& one) { return one.first == kind; })->second;
}

}  // namespace reference

/// The range of an op's operands.
std::pair<double, double> range_of(OpKind kind) {
  static const std::map<OpKind, std::pair<double, double>> kOther = {
      {OpKind::log1p, {-0.99, 9}},   {OpKind::pow, {0.1, 3}},       {OpKind::log, {0.01, 9}},
      {OpKind::sqrt, {0, 9}},        {OpKind::rsqrt, {0.01, 9}},    {OpKind::tanh, {-4, 4}},
      {OpKind::erf, {-4, 4}},        {OpKind::sin, {-99, 99}},      {OpKind::cos, {-99, 99}},
      {OpKind::div, {1, 9}},         {OpKind::less, {-3, 3}},       {OpKind::less_equal, {-3, 3}},
      {OpKind::equal, {-3, 3}},      {OpKind::logical_and, {0, 2}}, {OpKind::logical_or, {0, 2}},
      {OpKind::logical_not, {0, 2}},
  };
  const auto other = kOther.find(kind);
  return other == kOther.end() ? std::pair(-9.0, 9.0) : other->second;
}

/// a of shape [5, 1, 131] and b of [7, 131], seen through a transpose, give [5, 7, 131].
void check_op(OpKind kind, DType dtype) {
  const OpInfo& info = op_info(kind);
  CAPTURE(info.name);
  CAPTURE(to_string(dtype));
  const Function reference = reference::of(kind);
  const auto [low, high] = range_of(kind);
  const DType result_type = info.result == OpInfo::Result::truth ? DType::i1 : dtype;
  const std::string_view type = to_string(dtype);
  const Module module =
      module_of(fmt::format("%a: {0}[5, 1, 131], %b: {0}[131, 7]", type),
                fmt::format("%t = transpose %b {{axes = [1, 0]}} : {0}[7, 131]\n"
                            "%y = {1} %a{2} : {3}[5, {4}, 131]",
                            type, info.name, info.min_operands == 2 ? ", %t" : "",
                            to_string(result_type), info.min_operands == 2 ? 7 : 1));
  const HostTensor a = random_tensor(dtype, {5, 1, 131}, low, high, 1);
  const HostTensor b = random_tensor(dtype, {131, 7}, low, high, 2);
  const std::vector<double> as = values_of(a), bs = values_of(b);
  const std::vector<double> got = values_of(evaluated(module, {a, b}));
  const std::vector<double> precise =
      values_of(evaluated(module, {a, b}, {0, 0}, {.precise = true}));
  const int64_t repeats = info.min_operands == 2 ? 7 : 1;
  int wrong = 0;
  for (int64_t i = 0; i < static_cast<int64_t>(got.size()); ++i) {
    const int64_t column = i % 131, row = i / 131;
    const double expected =
        reference(as[row / repeats * 131 + column], bs[column * 7 + row % repeats]);
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
#define SINTER_ELEMENTWISE(name, operands, result, domain, ...) \
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
  CHECK(apply("bit_and", kOdd, -2) == kOdd - 1);
  CHECK(apply("bit_xor", kOdd, -1) == -kOdd - 1);
  CHECK(apply("shift_left", 3, 62) == INT64_MIN + (int64_t{1} << 62));
  CHECK(apply("shift_left", 3, 64) == 0);
  CHECK(apply("shift_left", 3, -1) == 0);
  CHECK(apply("shift_right", INT64_MIN, 62) == -2);
  CHECK(apply("shift_right", -5, 64) == -1);
  CHECK(apply("shift_right", 5, INT64_MIN) == 0);
}

TEST_CASE("integer division by 0, of the least number by -1, and its negation") {
  for (const DType dtype : {DType::i32, DType::i64}) {
    const double least = dtype == DType::i32 ? -0x1p31 : -0x1p63;
    const HostTensor a = tensor(dtype, {5}, {5, -5, least, 0, least});
    const HostTensor b = tensor(dtype, {5}, {0, 0, 0, 0, -1});
    const auto of_two = [&](std::string_view op) {
      return values_of(
          evaluated(module_of(fmt::format("%a: {0}[5], %b: {0}[5]", to_string(dtype)),
                              fmt::format("%y = {} %a, %b : {}[5]", op, to_string(dtype))),
                    {a, b}));
    };
    const auto of_one = [&](std::string_view op) {
      return values_of(evaluated(module_of(fmt::format("%a: {}[5]", to_string(dtype)),
                                           fmt::format("%y = {} %a : {}[5]", op, to_string(dtype))),
                                 {a}));
    };
    CHECK(of_two("div_floor") == V{0, 0, 0, 0, least});
    CHECK(of_two("mod_floor") == V{5, -5, least, 0, 0});
    CHECK(of_one("neg") == V{-5, 5, least, 0, least});
    CHECK(of_one("abs") == V{5, 5, least, 0, least});
  }
}

TEST_CASE("a constant and a literal of i64 are exact") {
  const std::vector<int64_t> values = {(int64_t{1} << 53) - 1,
                                       (int64_t{1} << 53) + 1,
                                       -(int64_t{1} << 53) - 1,
                                       (int64_t{1} << 62) + 1,
                                       INT64_MAX,
                                       INT64_MIN,
                                       INT64_MIN + 1};
  const auto integers = [](const HostTensor& t) {
    return std::vector<int64_t>(t.data<int64_t>(), t.data<int64_t>() + t.volume());
  };
  const Module literal = module_of(
      "", fmt::format("%y = literal {{values = [{}]}} : i64[7]", fmt::join(values, ", ")));
  for (const bool precise : {false, true}) {
    CHECK(integers(evaluated(literal, {}, {0, 0}, {.precise = precise})) == values);
    for (const int64_t value : values)
      CHECK(integers(evaluated(
                module_of("", fmt::format("%y = constant {{value = {}}} : i64[2]", value)), {},
                {0, 0}, {.precise = precise})) == std::vector<int64_t>{value, value});
  }
}

TEST_CASE("an integer and a decimal number are rounded once to a float type") {
  const auto constant = [](std::string_view number, DType dtype) {
    return values_of(evaluated(
        module_of("", fmt::format("%y = constant {{value = {}}} : {}[]", number, to_string(dtype))),
        {}))[0];
  };
  // 2^60 + 2^36 is a tie of f32, and one more is the next double's tie.
  CHECK(constant("1152921573326323712", DType::f32) == 0x1p60);
  CHECK(constant("1152921573326323713", DType::f32) == 0x1.000002p60);
  CHECK(constant("1.000000059604644775390625", DType::f32) == 1);
  CHECK(constant("1.00000005960464477539062500001", DType::f32) == 1 + 0x1p-23);
  CHECK(constant("1.00048828125", DType::f16) == 1);
  CHECK(constant("1.00048828125000000000000001", DType::f16) == 1 + 0x1p-10);
  CHECK(constant("1.0039062500000000000000001", DType::bf16) == 1 + 0x1p-7);
}

TEST_CASE("activations of infinities, NaN and zeros") {
  const V xs = {-INFINITY, INFINITY, NAN, -0.0, 0.0, -1000};
  for (const DType dtype : kFloats)
    for (const std::string_view name : {"silu", "gelu", "gelu_tanh", "quick_gelu", "relu"}) {
      CAPTURE(name);
      const Module module = module_of(fmt::format("%x: {}[6]", to_string(dtype)),
                                      fmt::format("%y = {} %x : {}[6]", name, to_string(dtype)));
      const V y = values_of(evaluated(module, {tensor(dtype, {6}, xs)}));
      const bool relu = name == "relu";
      CHECK(std::isnan(y[0]) == !relu);
      CHECK(y[1] == INFINITY);
      CHECK(std::isnan(y[2]));
      CHECK((y[3] == 0 && y[4] == 0 && y[5] == 0));
      CHECK(std::signbit(y[3]) == !relu);
      CHECK_FALSE(std::signbit(y[4]));
      if (relu) CHECK((y[0] == 0 && !std::signbit(y[0])));
    }
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

TEST_CASE("ties of round and what floor and round leave as it is") {
  const auto apply = [](std::string_view op, DType dtype, const V& values) {
    const auto count = static_cast<int64_t>(values.size());
    return values_of(
        evaluated(module_of(fmt::format("%x: {}[{}]", to_string(dtype), count),
                            fmt::format("%y = {} %x : {}[{}]", op, to_string(dtype), count)),
                  {tensor(dtype, {count}, values)}));
  };
  for (const DType dtype : kFloats) {
    CHECK(apply("round", dtype, {0.5, 1.5, 2.5, -0.5, -1.5, -2.5, INFINITY, -INFINITY}) ==
          V{0, 2, 2, 0, -2, -2, INFINITY, -INFINITY});
    CHECK(std::signbit(apply("round", dtype, {-0.5})[0]));
    for (const std::string_view op : {"round", "floor"}) {
      CHECK(std::signbit(apply(op, dtype, {-0.0})[0]));
      CHECK_FALSE(std::signbit(apply(op, dtype, {0.0})[0]));
      CHECK(std::isnan(apply(op, dtype, {NAN})[0]));
    }
    CHECK(apply("floor", dtype, {-0.5, 2.5, -INFINITY}) == V{-1, 2, -INFINITY});
  }
}

TEST_CASE("comparisons with NaN are false, and zeros are equal") {
  const auto compare = [](std::string_view op, double a, double b) {
    return values_of(
        evaluated(module_of("%a: f32[1], %b: f32[1]", fmt::format("%y = {} %a, %b : i1[1]", op)),
                  {tensor(DType::f32, {1}, {a}), tensor(DType::f32, {1}, {b})}))[0];
  };
  for (const std::string_view op : {"less", "less_equal", "equal"}) {
    CHECK(compare(op, NAN, NAN) == 0);
    CHECK(compare(op, NAN, 1) == 0);
    CHECK(compare(op, 1, NAN) == 0);
    CHECK(compare(op, -0.0, 0.0) == (op != "less"));
    CHECK(compare(op, 0.0, -0.0) == (op != "less"));
  }
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
  for (const DType dtype : kFloats) {
    CHECK(std::isnan(apply("maximum", dtype, -INFINITY, NAN)));
    CHECK(std::isnan(apply("minimum", dtype, NAN, INFINITY)));
    CHECK_FALSE(std::signbit(apply("maximum", dtype, 0.0, -0.0)));
    CHECK(std::signbit(apply("minimum", dtype, -0.0, 0.0)));
    CHECK(std::signbit(apply("maximum", dtype, -0.0, -0.0)));
    CHECK(apply("div", dtype, 1, 0.0) == INFINITY);
    CHECK(apply("div", dtype, 1, -0.0) == -INFINITY);
    CHECK(std::isnan(apply("div", dtype, 0.0, 0.0)));
    CHECK(apply("pow", dtype, NAN, 0) == 1);
    CHECK(apply("pow", dtype, 1, NAN) == 1);
  }
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
}  // namespace sinter::host_eval_elementwise_test
