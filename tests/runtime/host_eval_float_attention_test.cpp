// float_attention against attention in float64.
#include <doctest/doctest.h>

#include "kernels/float_attention/order.h"
#include "runtime/attention_case.h"

namespace sinter::host_eval_float_attention_test {
namespace {

constexpr int64_t kRows = 300;  // of the caches
constexpr int64_t kTokens = 7;

/// How far a result may be from exact softmax attention: first order in u = 2^-24, the error of one
/// float32 rounding.
///
/// A score errs by u scale times the magnitudes of the partial sums of its dot product, by
/// u |score| of the factor, by 6 u |score| in softcap (division, tanh within 2 ulp <= 4 u, product)
/// and by u |score| where a mask is added. A weight exp(score - m) errs relatively by the score's
/// error, by u (m - score) of the subtraction and by 4 u of exp. What was summed is weighted again
/// once a tile: an exp and a product, and subtractions of differences that together are at most the
/// range of the scores. Sums of n terms err by n u. Numerator and denominator each err by that much
/// of sum w |v| and sum w; the quotient is rounded once.
double float_error_bound(const AttentionCase& c, const AttentionValues& x, int64_t token,
                         int64_t head) {
  constexpr double u = 0x1p-24;
  const int64_t low = x.low(c, token), count = x.count(c, token);
  double smallest = INFINITY, largest = -INFINITY, score_error = 0, most = 0;
  for (int64_t row = low; row < low + count; ++row) {
    double sum = 0, rounded = 0;
    for (int64_t i = 0; i < c.width; ++i)
      rounded += std::abs(sum += x.term(c, token, head, row, i));
    const double score = x.score(c, token, head, row);
    smallest = std::min(smallest, score);
    largest = std::max(largest, score);
    score_error = std::max(
        score_error, u * (rounded * std::abs(c.scale) + (c.softcap > 0 ? 8 : 2) * std::abs(score)));
    const int64_t kv_head = head / (c.heads / c.kv_heads);
    for (int64_t i = 0; i < c.value_width; ++i)
      most = std::max(most, std::abs(x.v[(row * c.kv_heads + kv_head) * c.value_width + i]));
  }
  const auto keys = static_cast<double>(count), tiles = keys / kFloatTileKeys + 2;
  const double range = largest - smallest;
  return 1.01 * most * (2 * (score_error + u * (2 * range + 4 + 5 * tiles + keys)) + u);
}

std::vector<HostTensor> inputs_of(const AttentionCase& c) {
  // One key; all of them; some from the middle; a part of a tile; the last; none, twice.
  return {random_tensor(DType::f32, {kTokens, c.heads * c.width}, -2, 2, 1),
          random_tensor(DType::f32, {kRows, c.kv_heads * c.width}, -2, 2, 2),
          random_tensor(DType::f32, {kRows, c.kv_heads * c.value_width}, -1, 1, 3),
          tensor(DType::i32, {kTokens}, {0, 0, 17, 140, 299, 5, 0}),
          tensor(DType::i32, {kTokens}, {0, 299, 150, 143, 299, 4, -1})};
}

/// Compares `float_attention` with `attention` in float64, the inputs of the case and a mask, if
/// `mask` names its type.
void check_float(const AttentionCase& c, std::string_view mask = "") {
  std::vector<HostTensor> inputs = inputs_of(c);
  std::string parameters = c.parameters(DType::f32, kRows), operand;
  if (!mask.empty()) {
    const DType dtype = mask == "i1" ? DType::i1 : DType::f32;
    inputs.push_back(dtype == DType::i1
                         ? random_tensor(dtype, {c.heads, kTokens, kRows}, 0, 2, 4)
                         : random_tensor(dtype, {c.heads, kTokens, kRows}, -1, 1, 4));
    parameters += fmt::format(", %m: {}[{}, N, {}]", mask, c.heads, kRows);
    operand = ", %m";
  }
  const auto module = [&](std::string_view algorithm) {
    return module_of(
        parameters,
        fmt::format("%y = attention %q, %k, %v, %f, %l{} {{{}{}}} : f32[N, {}]", operand,
                    order_text(algorithm), c.attrs(), c.heads * c.value_width));
  };
  const AttentionValues x(inputs);
  const std::vector<int64_t> symbols = {kTokens, 0};
  const EvalOptions precise{.precise = true};
  const Module own = module("float_attention");
  const auto exact = values_of(evaluated(module("attention"), inputs, symbols, precise));
  const auto also_exact = values_of(evaluated(own, inputs, symbols, precise));
  const auto got = values_of(evaluated(own, inputs, symbols));
  int wrong = 0, wrong_precise = 0;
  double farthest = 0;  // of what is allowed
  for (int64_t n = 0; n < kTokens; ++n)
    for (int64_t head = 0; head < c.heads; ++head) {
      const double bound = x.count(c, n) == 0 ? 0 : float_error_bound(c, x, n, head);
      for (int64_t i = 0; i < c.value_width; ++i) {
        const auto at = static_cast<size_t>((n * c.heads + head) * c.value_width + i);
        if (std::isnan(exact[at])) {  // no key
          wrong += !std::isnan(got[at]) || !std::isnan(also_exact[at]);
          continue;
        }
        wrong_precise += !(std::abs(also_exact[at] - exact[at]) <= ulp(DType::f32, exact[at]));
        const double allowed = bound + 0.5 * ulp(DType::f32, exact[at]);
        wrong += !(std::abs(got[at] - exact[at]) <= allowed);
        farthest = std::max(farthest, std::abs(got[at] - exact[at]) / allowed);
      }
    }
  CAPTURE(c.attrs());
  CAPTURE(mask);
  CHECK(wrong == 0);
  CHECK(wrong_precise == 0);
  CHECK((farthest > 0.001 || c.window == 1));  // of one key there is no error
}

}  // namespace

TEST_CASE("attention of many tokens of float32 is attention, within its roundings") {
  const AttentionCase cases[] = {
      {4, 4, 8, 8, 0.375},    {8, 2, 64, 64, 0.125},          {6, 2, 10, 7, 1},
      {3, 1, 1, 1, 2},        {2, 1, 256, 256, 0.0625},       {4, 4, 3, 40, -1},
      {5, 1, 40, 3, 0.5},     {12, 4, 80, 80, 0.25, 5},       {4, 1, 16, 16, 1, 30, 7},
      {2, 2, 128, 128, 0, 0}, {2, 2, 16, 24, 1, 0, 1},        {2, 2, 16, 24, 1, 0, 64},
      {2, 1, 96, 96, 0.1},    {2, 2, 16, 24, 1, 0, INT64_MAX}};
  for (const AttentionCase& c : cases) check_float(c);
}

TEST_CASE("float_attention with a mask of truth values, and one of numbers") {
  for (std::string_view mask : {"i1", "f32"}) {
    check_float({4, 2, 16, 24, 0.25}, mask);
    check_float({2, 1, 64, 64, 0.125, 5, 200}, mask);
  }
}

TEST_CASE("float_attention: what a mask hides takes no part, whatever it is") {
  const Module module = module_of(
      "%q: f32[N, 1], %k: f32[3, 1], %v: f32[3, 1], %f: i32[N], %l: i32[N], %m: i1[1, 1, 3]",
      "%y = attention %q, %k, %v, %f, %l, %m {order = float_attention, heads = 1, kv_heads = 1, "
      "scale = 0x1p+0} : "
      "f32[N, 1]");
  const std::vector<HostTensor> inputs = {tensor(DType::f32, {1, 1}, {1}),
                                          tensor(DType::f32, {3, 1}, {1, NAN, 1}),
                                          tensor(DType::f32, {3, 1}, {2, INFINITY, 4}),
                                          tensor(DType::i32, {1}, {0}),
                                          tensor(DType::i32, {1}, {2}),
                                          tensor(DType::i1, {1, 1, 3}, {1, 0, 1})};
  for (bool precise : {false, true})
    CHECK(values_of(evaluated(module, inputs, {1, 0}, {.precise = precise}))[0] == 3);
}

TEST_CASE("float_attention: a token that sees rows outside of the cache is an error") {
  const AttentionCase c{1, 1, 8, 8, 1};
  std::vector<HostTensor> inputs = inputs_of(c);
  inputs[4] = tensor(DType::i32, {kTokens}, {kRows, 299, 150, 143, 299, 4, -1});
  const Module module = c.module("float_attention", DType::f32, kRows);
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& input : inputs) pointers.push_back(&input);
  const auto result = evaluate(module.entries[0].graph, module.symbols, {kTokens, 0}, pointers);
  REQUIRE_FALSE(result);
  CHECK(result.error().what.find("token 0 sees rows 0 .. 300 of 0 .. 299") != std::string::npos);
}

}  // namespace sinter::host_eval_float_attention_test
