// decode_attention against attention in float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "kernels/decode_attention/order.h"
#include "runtime/attention_case.h"

namespace sinter::host_eval_decode_attention_test {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr int64_t kRows = 300;  // of the caches

struct Case : AttentionCase {
  int64_t splits;
  int64_t streams;  // 0: the most

  Case(int64_t heads, int64_t kv_heads, int64_t width, int64_t value_width, int64_t splits,
       double scale, double softcap = 0, int64_t window = 0, int64_t streams = 0)
      : AttentionCase{heads, kv_heads, width, value_width, scale, softcap, window},
        splits(splits),
        streams(streams) {}
  Module attention(DType dtype, int64_t rows = kRows) const {
    return module("attention", dtype, rows);
  }
  Module few(DType dtype, int64_t rows = kRows) const {
    return module("decode_attention", dtype, rows,
                  fmt::format(", splits = {}", splits) +
                      (streams > 0 ? fmt::format(", streams = {}", streams) : ""));
  }
};
using Values = AttentionValues;

/// How far a result may be from exact softmax attention before it is rounded to its type: first
/// order in u = 2^-24, the error of one float32 rounding.
///
/// A score errs by at most (roundings) u sum |q k| scale, and by 6 u |score| in softcap (division,
/// tanh within 2 ulp <= 4 u, product). A weight exp(score - m) errs relatively by the score's
/// error, by u (m - score) of the subtraction and by 4 u of exp. What was summed is weighted again
/// once a block of its stream, once among the streams and once among the splits: each time a
/// subtraction, of differences that together are at most the range of the scores in the stream,
/// then the range twice more; an exp; a product. Sums of n terms err by n u; the sums of a warp's
/// streams and of the warps round 5 + 16 times at most. Numerator and denominator each err by that
/// much of sum w |v| and sum w; the quotient is rounded once.
double error_bound(const Case& c, const Values& x, int64_t token, int64_t head) {
  constexpr double u = 0x1p-24;
  const int64_t low = x.low(c, token), count = x.count(c, token);
  double smallest = INFINITY, largest = -INFINITY, score_error = 0, most = 0;
  for (int64_t row = low; row < low + count; ++row) {
    double magnitude = 0;
    for (int64_t i = 0; i < c.width; ++i) magnitude += std::abs(x.term(c, token, head, row, i));
    const double score = x.score(c, token, head, row);
    smallest = std::min(smallest, score);
    largest = std::max(largest, score);
    const double roundings = 8 + 5 + 1;  // a lane's chain, the butterfly, the scale
    score_error = std::max(score_error, u * (roundings * magnitude * std::abs(c.scale) +
                                             (c.softcap > 0 ? 6 * std::abs(score) : 0)));
    const int64_t kv_head = head / (c.heads / c.kv_heads);
    for (int64_t i = 0; i < c.value_width; ++i)
      most = std::max(most, std::abs(x.v[(row * c.kv_heads + kv_head) * c.value_width + i]));
  }
  const double range = largest - smallest;
  const auto ceiling = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int lanes = attention_lanes(static_cast<int>(c.width), static_cast<int>(c.value_width));
  const auto blocks =  // of a stream
      static_cast<double>(ceiling(ceiling(ceiling(count, c.splits), kAttentionBlock),
                                  c.streams > 0 ? c.streams : attention_most_streams(lanes)));
  const double weighting = (4 + 3 * range) + blocks * (4 + 1) + 4 + 4;
  const double summing = 4 * blocks + 5 + 16 + static_cast<double>(c.splits);
  return 1.01 * most * (2 * (score_error + u * (range + weighting + summing)) + u);
}

/// Compares the ops with attention in float64; the number of elements that are too far away.
void check(const Case& c, DType dtype, const Values& x, const std::vector<HostTensor>& inputs) {
  const auto tokens = static_cast<int64_t>(x.first.size());
  const std::vector<int64_t> symbols = {tokens, 0};
  const EvalOptions precise{.precise = true};
  const auto exact = values_of(evaluated(c.attention(dtype), inputs, symbols, precise));
  const auto also_exact = values_of(evaluated(c.few(dtype), inputs, symbols, precise));
  const auto got = values_of(evaluated(c.few(dtype), inputs, symbols));
  const std::string name = fmt::format("{} {} x {}, {} splits: {}", to_string(dtype), c.width,
                                       c.value_width, c.splits, c.attrs());
  int wrong = 0, wrong_precise = 0;
  for (int64_t n = 0; n < tokens; ++n)
    for (int64_t head = 0; head < c.heads; ++head) {
      const double bound = x.count(c, n) > 0 ? error_bound(c, x, n, head) : 0;
      for (int64_t i = 0; i < c.value_width; ++i) {
        const auto at = static_cast<size_t>((n * c.heads + head) * c.value_width + i);
        if (x.count(c, n) == 0) {
          wrong += !std::isnan(exact[at]) || !std::isnan(got[at]);
          wrong_precise += !std::isnan(also_exact[at]);
          continue;
        }
        // Both float64 results were rounded to float32.
        wrong_precise += std::abs(also_exact[at] - exact[at]) > ulp(DType::f32, exact[at]);
        const double allowed = bound + 0.5 * ulp(dtype, std::abs(exact[at]) + bound) +
                               0.5 * ulp(DType::f32, exact[at]);
        wrong += !(std::abs(got[at] - exact[at]) <= allowed);
      }
    }
  CHECK_MESSAGE(wrong == 0, name);
  CHECK_MESSAGE(wrong_precise == 0, name);
}

TEST_CASE("attention of few tokens is attention, within the roundings of float32") {
  const Case cases[] = {
      {4, 4, 8, 8, 4, 0.375},
      {8, 2, 64, 64, 8, 0.125},
      {6, 2, 10, 7, 3, 1},  // no whole chunks
      {3, 1, 1, 1, 1, 2},
      {2, 1, 256, 256, 7, 0.0625},
      {4, 4, 3, 40, 5, -1},
      {5, 1, 40, 3, 6, 0.5},
      {12, 4, 80, 80, 8, 0.25, 5},
      {4, 1, 16, 16, 4, 1, 30, 7},
      {2, 2, 16, 24, 2, 1, 0, 1},
      {2, 2, 16, 24, 8, 1, 0, 64},
      {2, 2, 16, 24, 1, 1, 0, INT64_MAX},
      {8, 2, 64, 64, 1, 0.125, 0, 0, 4},
      {4, 4, 3, 40, 2, -1, 0, 0, 16},
      {2, 1, 256, 256, 1, 0.0625, 5, 0, 1},
  };
  for (const Case& c : cases)
    for (DType dtype : kFloats) {
      // One key; all of them; some from the middle; fewer than splits; none, twice.
      const std::vector<double> first = {0, 0, 17, 140, 299, 5, 0},
                                last = {0, 299, 150, 143, 299, 4, -1};
      const std::vector<HostTensor> inputs = {
          random_tensor(dtype, {7, c.heads * c.width}, -2, 2, 1),
          random_tensor(dtype, {kRows, c.kv_heads * c.width}, -2, 2, 2),
          random_tensor(dtype, {kRows, c.kv_heads * c.value_width}, -1, 1, 3),
          tensor(DType::i32, {7}, first), tensor(DType::i32, {7}, last)};
      check(c, dtype, Values(inputs), inputs);
    }
}

TEST_CASE("infinite scores, and rows that no token sees") {
  // One head of one element, so that a key is its score.
  const Case c{1, 1, 1, 1, 2, 1};
  const auto attend = [&](std::vector<double> keys, double first, double last) {
    const auto rows = static_cast<int64_t>(keys.size());
    std::vector<double> values;
    for (int64_t i = 0; i < rows; ++i) values.push_back(static_cast<double>(i));
    const std::vector<HostTensor> inputs = {
        tensor(DType::f32, {1, 1}, {1}), tensor(DType::f32, {rows, 1}, keys),
        tensor(DType::f32, {rows, 1}, values), tensor(DType::i32, {1}, {first}),
        tensor(DType::i32, {1}, {last})};
    const double exact =
        values_of(evaluated(c.attention(DType::f32, rows), inputs, {1, 0}, {.precise = true}))[0];
    const double got = values_of(evaluated(c.few(DType::f32, rows), inputs, {1, 0}))[0];
    CHECK_MESSAGE(
        (std::isnan(exact) == std::isnan(got) && (std::isnan(got) || std::abs(got - exact) < 1e-4)),
        exact, " and ", got);
    return got;
  };
  std::vector<double> keys(100, -INFINITY);
  CHECK(std::isnan(attend(keys, 0, 99)));
  keys[60] = 3;  // the others weigh nothing, whole blocks and a whole split of them
  CHECK(attend(keys, 0, 99) == 60);
  keys[61] = 3;
  CHECK(attend(keys, 0, 99) == 60.5);
  keys[7] = INFINITY;
  CHECK(std::isnan(attend(keys, 0, 99)));
  keys[7] = NAN;
  CHECK(std::isnan(attend(keys, 0, 99)));
  CHECK(attend(keys, 8, 99) == 60.5);
  CHECK(attend(keys, 60, 60) == 60);
  // Beyond float32 when m is subtracted, yet exact.
  CHECK(attend({-3e38, 3e38, -3e38}, 0, 2) == 1);
}

TEST_CASE("decode_attention: a token that sees rows outside of the cache is an error") {
  const Case c{1, 1, 2, 2, 4, 1};
  const auto message = [&](double first, double last) {
    const std::vector<HostTensor> inputs = {
        random_tensor(DType::f32, {1, 2}, -1, 1, 1), random_tensor(DType::f32, {3, 2}, -1, 1, 2),
        random_tensor(DType::f32, {3, 2}, -1, 1, 3), tensor(DType::i32, {1}, {first}),
        tensor(DType::i32, {1}, {last})};
    return eval_error(c.few(DType::f32, 3), inputs, {1, 0});
  };
  CHECK(message(1, 3).find("token 0 sees rows 1 .. 3 of 0 .. 2") != std::string::npos);
  CHECK(message(-1, 2).find("token 0 sees rows -1 .. 2 of 0 .. 2") != std::string::npos);
}

/// A checked op whose token sees the rows first .. last must equal an unchecked one whose token
/// sees low .. high, the part of these rows that is there.
struct Seen {
  double first, last, low, high;
};
constexpr Seen kWithoutWindow[] = {{-3, 2, 0, 2},        {1, 9, 1, 4},
                                   {-1, 5, 0, 4},        {INT32_MIN, INT32_MAX, 0, 4},
                                   {2, 3, 2, 3},         {-9, -1, 1, 0},
                                   {5, 9, 1, 0},         {3, 2, 1, 0},
                                   {0, INT32_MIN, 1, 0}, {INT32_MAX, INT32_MAX, 1, 0}};
/// A token sees at most the last three rows of its range.
constexpr Seen kWithWindow[] = {
    {-3, 1, 0, 1}, {0, 5, 3, 4},         {INT32_MIN, 6, 4, 4},        {0, 7, 1, 0},
    {-9, 0, 0, 0}, {0, INT32_MAX, 1, 0}, {INT32_MIN, INT32_MIN, 1, 0}};

TEST_CASE("a checked attention sees those rows of its range that are there") {
  const HostTensor q = random_tensor(DType::f32, {1, 8}, -1, 1, 1),
                   k = random_tensor(DType::f32, {5, 8}, -1, 1, 2),
                   v = random_tensor(DType::f32, {5, 8}, -1, 1, 3),
                   scores = random_tensor(DType::f32, {2, 1, 5}, -1, 1, 4);
  const auto attend = [&](double first, double last, std::string_view more) {
    return values_of(evaluated(
        module_of(
            "%q: f32[1, 8], %k: f32[5, 8], %v: f32[5, 8], %first: i32[1], %last: i32[1]",
            fmt::format(
                "%y = attention %q, %k, %v, %first, %last {{order = decode_attention, heads = 2, "
                "kv_heads = 2, scale = 0.5, splits = 2{}}} : f32[1, 8]",
                more)),
        {q, k, v, tensor(DType::i32, {1}, {first}), tensor(DType::i32, {1}, {last})}));
  };
  const auto probabilities = [&](double first, double last, std::string_view more) {
    return values_of(evaluated(
        module_of("%s: f32[2, 1, 5], %first: i32[1], %last: i32[1]",
                  fmt::format("%y = attention_softmax %s, %first, %last {{dtype = f32, scale = "
                              "0.5{}}} : f32[2, 1, 5]",
                              more)),
        {scores, tensor(DType::i32, {1}, {first}), tensor(DType::i32, {1}, {last})}));
  };
  const auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    for (size_t i = 0; i < a.size(); ++i)
      CHECK((a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))));
  };
  const auto check_all = [&](llvm::ArrayRef<Seen> all, std::string_view more) {
    for (const Seen& seen : all) {
      CAPTURE(seen.first);
      CAPTURE(seen.last);
      same(attend(seen.first, seen.last, fmt::format("{}, checked = 1", more)),
           attend(seen.low, seen.high, ""));
      same(probabilities(seen.first, seen.last, fmt::format("{}, checked = 1", more)),
           probabilities(seen.low, seen.high, ""));
      CHECK(std::isnan(attend(seen.low, seen.high, "")[0]) == (seen.low > seen.high));
    }
  };
  check_all(kWithoutWindow, "");
  check_all(kWithWindow, ", window = 3");
}

}  // namespace
}  // namespace sinter::host_eval_decode_attention_test
