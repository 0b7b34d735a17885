// tiled_attention against attention in float64.
#include <doctest/doctest.h>

#include "kernels/tiled_attention/order.h"
#include "runtime/attention_case.h"

namespace sinter::host_eval_tiled_attention_test {
namespace {

constexpr int64_t kRows = 300;  // of the caches
constexpr DType kTypes[] = {DType::f16, DType::bf16};

/// How far a result may be from exact softmax attention before it is rounded to its type: first
/// order in u = 2^-24, the error of one float32 rounding.
///
/// A score errs by (steps of 16 elements) u sum |q k| scale, by 2 u |score| of the factor and of m
/// times the factor, by 6 u |score| in softcap. A weight errs relatively by the score's error, by u
/// times the range of the scores of the fused multiply-add, by the polynomial's 2.9e-6 and by the
/// rounding to 16 bits; one too small for f16 by 2^-25 of the largest. What was summed is
/// multiplied by another weight once a tile. Sums of n terms err by n u. Numerator and denominator
/// have the same weights: each errs by that much of sum w |v| and sum w. The quotient is rounded
/// twice.
double error_bound(const AttentionCase& c, const AttentionValues& x, DType dtype, int64_t token,
                   int64_t head) {
  constexpr double u = 0x1p-24, power = 2.9e-6;
  const int64_t low = x.low(c, token), count = x.count(c, token);
  double smallest = INFINITY, largest = -INFINITY, score_error = 0, most = 0;
  for (int64_t row = low; row < low + count; ++row) {
    double magnitude = 0;
    for (int64_t i = 0; i < c.width; ++i) magnitude += std::abs(x.term(c, token, head, row, i));
    const double score = x.score(c, token, head, row);
    smallest = std::min(smallest, score);
    largest = std::max(largest, score);
    const auto steps = static_cast<double>((c.width + 15) / 16);
    score_error = std::max(score_error, u * (steps * magnitude * std::abs(c.scale) +
                                             (c.softcap > 0 ? 8 : 2) * std::abs(score)));
    const int64_t kv_head = head / (c.heads / c.kv_heads);
    for (int64_t i = 0; i < c.value_width; ++i)
      most = std::max(most, std::abs(x.v[(row * c.kv_heads + kv_head) * c.value_width + i]));
  }
  const double rounding = dtype == DType::f16 ? 0x1p-11 : 0x1p-8;
  const auto keys = static_cast<double>(count);
  const double tiles = keys / 64 + 2;
  const double of_weight = score_error + u * (largest - smallest) + power + rounding;
  return 1.01 * most *
         (2 * (of_weight + tiles * (power + 2 * u) + keys * u) + keys * 0x1p-25 + 2 * u);
}

void check(const AttentionCase& c, DType dtype, const std::vector<HostTensor>& inputs) {
  const AttentionValues x(inputs);
  const auto tokens = static_cast<int64_t>(x.first.size());
  const std::vector<int64_t> symbols = {tokens, 0};
  const EvalOptions precise{.precise = true};
  const Module tiled = c.module("tiled_attention", dtype, kRows);
  const auto exact =
      values_of(evaluated(c.module("attention", dtype, kRows), inputs, symbols, precise));
  const auto also_exact = values_of(evaluated(tiled, inputs, symbols, precise));
  const auto got = values_of(evaluated(tiled, inputs, symbols));
  int wrong = 0, wrong_precise = 0;
  double farthest = 0;  // of what is allowed
  for (int64_t n = 0; n < tokens; ++n)
    for (int64_t head = 0; head < c.heads; ++head) {
      const bool none = x.count(c, n) == 0;
      const double bound = none ? 0 : error_bound(c, x, dtype, n, head);
      for (int64_t i = 0; i < c.value_width; ++i) {
        const auto at = static_cast<size_t>((n * c.heads + head) * c.value_width + i);
        if (none) {
          wrong += !std::isnan(exact[at]) || !std::isnan(got[at]) || !std::isnan(also_exact[at]);
          continue;
        }
        wrong_precise += std::abs(also_exact[at] - exact[at]) > ulp(DType::f32, exact[at]);
        const double allowed = bound + 0.5 * ulp(dtype, std::abs(exact[at]) + bound) +
                               0.5 * ulp(DType::f32, exact[at]);
        wrong += !(std::abs(got[at] - exact[at]) <= allowed);
        farthest = std::max(farthest, std::abs(got[at] - exact[at]) / allowed);
      }
    }
  CAPTURE(to_string(dtype));
  CAPTURE(c.attrs());
  CHECK(wrong == 0);
  CHECK(wrong_precise == 0);
  CHECK((farthest > 0.01 ||
         c.window == 1));  // the bound means something; of one key there is no error
}

}  // namespace

TEST_CASE("attention of many tokens is attention, within its roundings") {
  const AttentionCase cases[] = {
      {4, 4, 8, 8, 0.375},      {8, 2, 64, 64, 0.125},          {6, 2, 10, 7, 1},
      {3, 1, 1, 1, 2},          {2, 1, 256, 256, 0.0625},       {4, 4, 3, 40, -1},
      {5, 1, 40, 3, 0.5},       {12, 4, 80, 80, 0.25, 5},       {4, 1, 16, 16, 1, 30, 7},
      {2, 2, 128, 128, 0.1, 0}, {2, 2, 16, 24, 1, 0, 1},        {2, 2, 16, 24, 1, 0, 64},
      {2, 1, 96, 96, 0.1},      {2, 2, 16, 24, 1, 0, INT64_MAX}};
  for (const AttentionCase& c : cases)
    for (DType dtype : kTypes) {
      // One key; all of them; some from the middle; a part of a tile; the last; none, twice.
      const std::vector<HostTensor> inputs = {
          random_tensor(dtype, {7, c.heads * c.width}, -2, 2, 1),
          random_tensor(dtype, {kRows, c.kv_heads * c.width}, -2, 2, 2),
          random_tensor(dtype, {kRows, c.kv_heads * c.value_width}, -1, 1, 3),
          tensor(DType::i32, {7}, {0, 0, 17, 140, 299, 5, 0}),
          tensor(DType::i32, {7}, {0, 299, 150, 143, 299, 4, -1})};
      check(c, dtype, inputs);
    }
}

TEST_CASE("tiled_attention: a token that sees rows outside of the cache is an error") {
  const AttentionCase c{1, 1, 8, 8, 1};
  const std::vector<HostTensor> inputs = {
      random_tensor(DType::f16, {1, 8}, -1, 1, 1), random_tensor(DType::f16, {kRows, 8}, -1, 1, 2),
      random_tensor(DType::f16, {kRows, 8}, -1, 1, 3), tensor(DType::i32, {1}, {4}),
      tensor(DType::i32, {1}, {kRows})};
  const Module module = c.module("tiled_attention", DType::f16, kRows);
  std::vector<const HostTensor*> pointers;
  for (const HostTensor& input : inputs) pointers.push_back(&input);
  const auto result = evaluate(module.entries[0].graph, module.symbols, {1, 0}, pointers);
  REQUIRE_FALSE(result);
  CHECK(result.error().what.find("token 0 sees rows 4 .. 300 of 0 .. 299") != std::string::npos);
}

}  // namespace sinter::host_eval_tiled_attention_test
