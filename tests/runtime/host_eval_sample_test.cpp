// sample against a direct implementation in float64, and its draws against their probabilities.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "kernels/sample/order.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_sample_test {
namespace {

struct Choice {
  double temperature = 1;
  int top_k = 0;  // all
  double top_p = 1;
  int seed = 0, step = 0;
};

/// Chooses a token for each row; `rows` are equally long.
std::vector<int> sampled_rows(const std::vector<std::vector<double>>& rows,
                              const std::vector<Choice>& choices, DType dtype = DType::f32,
                              bool precise = false) {
  const auto count = static_cast<int64_t>(rows.size()),
             width = static_cast<int64_t>(rows[0].size());
  std::vector<double> logits;
  for (const auto& row : rows) logits.insert(logits.end(), row.begin(), row.end());
  const auto column = [&](DType type, auto member) {
    std::vector<double> values;
    for (const Choice& choice : choices) values.push_back(choice.*member);
    return tensor(type, {count}, values);
  };
  const Module module = module_of(
      fmt::format("%x: {}[N, {}], %t: f32[N], %k: i32[N], %p: f32[N], %seed: i32[N], %step: i32[N]",
                  to_string(dtype), width),
      "%y = sample %x, %t, %k, %p, %seed, %step : i32[N]");
  const std::vector<double> tokens = values_of(
      evaluated(module,
                {tensor(dtype, {count, width}, logits), column(DType::f32, &Choice::temperature),
                 column(DType::i32, &Choice::top_k), column(DType::f32, &Choice::top_p),
                 column(DType::i32, &Choice::seed), column(DType::i32, &Choice::step)},
                {count, 0}, {.precise = precise}));
  return {tokens.begin(), tokens.end()};
}

int sampled(const std::vector<double>& row, const Choice& choice, DType dtype = DType::f32) {
  return sampled_rows({{row}}, {choice}, dtype)[0];
}

/// One draw for each of `count` steps, all of row 0.
std::vector<int> draws(const std::vector<double>& row, Choice choice, int count) {
  std::vector<int> tokens;
  for (int step = 0; step < count; ++step) {
    choice.step = step;
    tokens.push_back(sampled(row, choice));
  }
  return tokens;
}

/// The probabilities of a choice, from its definition in ops.def; 0 for what is cut.
struct Probabilities {
  std::vector<double> p;
  double closest = INFINITY;  // distance between top_p and the probability up to some element

  Probabilities(const std::vector<double>& logits, const Choice& choice) {
    std::vector<double> sorted = logits;
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    const auto width = sorted.size();
    double least = -INFINITY, total = 0, sum = 0;
    if (choice.top_k > 0 && choice.top_k < static_cast<int>(width))
      least = sorted[choice.top_k - 1];
    const auto weight = [&](double x) {
      return x < least ? 0 : std::exp((x - sorted[0]) / choice.temperature);
    };
    for (double x : logits) total += weight(x);
    // Equal values go together: whether the sum suffices is asked where the value changes.
    for (size_t i = 0; i < width && choice.top_p < 1; ++i) {
      sum += weight(sorted[i]);
      if (i + 1 < width && sorted[i + 1] == sorted[i]) continue;
      closest = std::min(closest, std::abs(sum / total - choice.top_p));
      if (sum / total < choice.top_p && sum < total) continue;
      least = sorted[i];
      break;
    }
    total = 0;
    for (double x : logits) total += weight(x);
    for (double x : logits) p.push_back(weight(x) / total);
  }
};

TEST_CASE("greedy: the largest logit, of equal ones the first") {
  for (double temperature : {0.0, -0.0, -1.0, double(NAN)}) {
    const Choice greedy{.temperature = temperature, .top_k = 3, .top_p = 0.5, .seed = 9, .step = 4};
    CHECK(sampled({1, 3, 2}, greedy) == 1);
    CHECK(sampled({1, 3, 2, 3, 3}, greedy) == 1);
    CHECK(sampled({-5}, greedy) == 0);
    CHECK(sampled({-0.0, 0.0}, greedy) == 0);
    CHECK(sampled({0.0, -0.0}, greedy) == 0);
    CHECK(sampled({-1, -1e-45, -0.0, 0.0}, greedy) == 2);
    CHECK(sampled({-INFINITY, -INFINITY, -3e38}, greedy) == 2);
    CHECK(sampled({2, 65504, -65504}, greedy, DType::f16) == 1);
    CHECK(sampled({-3e38, -1e-30, -2}, greedy, DType::bf16) == 1);
  }
}

TEST_CASE("logits that are not finite choose no token; -infinity masks one") {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const Choice& choice : {Choice{.temperature = 0}, Choice{}, {.top_k = 2, .top_p = 0.9}}) {
      for (const std::vector<double>& row : {std::vector<double>{NAN, NAN},
                                             {NAN, 1, 2},
                                             {1, 2, NAN, 1},
                                             {1, -INFINITY, NAN},
                                             {1, INFINITY, 2},
                                             {INFINITY},
                                             {-INFINITY},
                                             {-INFINITY, -INFINITY},
                                             {NAN, INFINITY}})
        CHECK(sampled(row, choice, dtype) == kNoToken);
      CHECK(sampled({-INFINITY, 1, -INFINITY}, choice, dtype) == 1);
    }
  CHECK(sampled({1, 7e4, 2}, {.temperature = 0}, DType::f16) == kNoToken);  // infinite as f16
}

TEST_CASE("logits far below the largest are never drawn") {
  for (int step = 0; step < 50; ++step) {
    for (const Choice& choice : {Choice{.step = step}, {.top_k = 2, .top_p = 0.9, .step = step}}) {
      const int token = sampled({-INFINITY, 1, -INFINITY, 1, -INFINITY}, choice);
      CHECK((token == 1 || token == 3));
    }
    // The quotient overflows; a logit 30 below the largest at a fifth of 1 weighs less than 2^-40.
    CHECK(sampled({1, 2, 1.5}, {.temperature = 1e-45, .step = step}) == 1);
    CHECK(sampled({0, 30}, {.temperature = 0.2, .step = step}) == 1);
  }
  std::set<int> seen;
  for (int token : draws({-50, 0, 50}, {.temperature = INFINITY}, 100)) seen.insert(token);
  CHECK(seen == std::set{0, 1, 2});  // all alike
}

TEST_CASE("top_k = 1 and top_p = 0 leave the largest") {
  const auto seen = [](const std::vector<double>& row, const Choice& choice) {
    const std::vector<int> tokens = draws(row, choice, 100);
    return std::set<int>(tokens.begin(), tokens.end());
  };
  const std::vector<double> row = {0.5, 1, 0.75, 0.9}, tie = {1, 0, 1, 0.5, -0.0};
  for (const Choice& choice : {Choice{.top_k = 1}, {.top_p = 0}, {.top_p = -1}, {.top_p = 1e-30}}) {
    CHECK(seen(row, choice) == std::set{1});
    CHECK(seen(tie, choice) == std::set{0, 2});
  }
  CHECK(seen({0.0, -0.0, -1}, {.top_k = 1}) == std::set{0, 1});
  // Choices that cut nothing.
  for (const Choice& choice :
       {Choice{}, {.top_k = -3}, {.top_k = 4}, {.top_k = INT32_MAX}, {.top_p = 2}, {.top_p = NAN}})
    CHECK(seen(row, choice) == std::set{0, 1, 2, 3});
  // Three of four by number, then half of their weight.
  CHECK(seen(row, {.top_k = 3}) == std::set{1, 2, 3});
  CHECK(seen({2, 0, 2, 0}, {.top_p = 0.7}) == std::set{0, 2});
  CHECK(seen({2, 0, 2, 0}, {.top_p = 0.9}) == std::set{0, 1, 2, 3});
  // One of two tokens with equal weights reaches a half exactly.
  CHECK(seen({0, 1}, {.temperature = 1e20, .top_p = 0.5}) == std::set{1});
  CHECK(seen({0, 1}, {.temperature = 1e20, .top_p = 0.51}) == std::set{0, 1});
  // Ties at the cut stay together.
  CHECK(seen({1, 2, 1, 1, 0}, {.top_k = 2}) == std::set{0, 1, 2, 3});
}

TEST_CASE("draws follow the running probabilities of what the cuts leave") {
  // The op's random number as a fraction, against running sums in float64. Weights err by float32
  // roundings (quotient, difference up to 20, exp: below 2^-18 together) and by 2^-40.
  constexpr double kError = 0x1p-17;
  int near_a_cut = 0, wrong = 0, cases = 0;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (int64_t width : {1, 2, 3, 7, 33, 100})
      for (int turn = 0; turn < 40; ++turn) {
        const auto seed = static_cast<uint64_t>(1000 * width + turn);
        std::vector<std::vector<double>> rows;
        std::vector<Choice> choices;
        for (int n = 0; n < 8; ++n) {
          std::vector<double> row =
              values_of(random_tensor(dtype, {width}, -4, 4, seed * 8 + static_cast<uint64_t>(n)));
          if (turn % 2 == 0)
            for (double& x : row) x = std::round(x);  // many ties
          rows.push_back(std::move(row));
          constexpr double kTemperatures[] = {1, 0.5, 1.75}, kTopPs[] = {1, 0.9, 0.5, 0.1};
          constexpr int kTopKs[] = {0, 1, 2, 5, 50};
          choices.push_back({kTemperatures[(turn + n) % 3], kTopKs[(turn / 3 + n) % 5],
                             kTopPs[(turn / 2 + n) % 4], turn * 77 - 1000, n * 5 - 3});
        }
        const std::vector<int> tokens = sampled_rows(rows, choices, dtype);
        CHECK(sampled_rows(rows, choices, dtype, true) == tokens);
        for (int n = 0; n < 8; ++n, ++cases) {
          const Probabilities probabilities(rows[n], choices[n]);
          if (probabilities.closest < kError) {
            ++near_a_cut;  // the cut itself may fall either way
            continue;
          }
          const double drawn =
              static_cast<double>(sampling_bits(choices[n].seed, choices[n].step)) * 0x1p-64;
          double below = 0;
          for (int i = 0; i < tokens[n]; ++i) below += probabilities.p[i];
          const double own = probabilities.p[tokens[n]];
          wrong += own == 0 || drawn < below - kError || drawn > below + own + kError;
        }
      }
  CHECK(wrong == 0);
  CHECK(near_a_cut < cases / 50);
}

/// Pearson's statistic of draws against probabilities; the number of categories that can occur.
std::pair<double, int> chi_square(const std::vector<int>& tokens, const std::vector<double>& p) {
  std::map<int, double> counts;
  for (int token : tokens) ++counts[token];
  double statistic = 0;
  int categories = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    const double expected = p[i] * static_cast<double>(tokens.size()),
                 seen = counts[static_cast<int>(i)];
    if (expected == 0 && seen > 0) return {INFINITY, 1};
    if (expected == 0) continue;
    REQUIRE(expected >= 5);  // the usual condition for the limit distribution
    statistic += (seen - expected) * (seen - expected) / expected;
    ++categories;
  }
  return {statistic, categories};
}

/// Exceeded with probability e^-t = 10^-6 at most (Laurent and Massart 2000, lemma 1: for a
/// chi-square variable X of d degrees of freedom P(X >= d + 2 sqrt(d t) + 2 t) <= e^-t).
double bound(int degrees) {
  const double t = std::log(1e6), d = degrees;
  return d + 2 * std::sqrt(d * t) + 2 * t;
}

TEST_CASE("steps and seeds each draw from the distribution") {
  const std::vector<double> logits = {0.1, -1, 1.5, 0.7, -0.3, 2, 0, 0.7, -2, 1};
  constexpr int kDraws = 4096;
  for (const Choice& base :
       {Choice{}, {.temperature = 0.7}, {.top_k = 5}, {.temperature = 1.5, .top_p = 0.8}}) {
    const Probabilities expected(logits, base);
    const auto fits = [&](const std::vector<int>& tokens, const std::vector<double>& p) {
      const auto [statistic, categories] = chi_square(tokens, p);
      return statistic < bound(categories - 1);
    };
    Choice choice = base;
    choice.seed = 12345;
    const std::vector<int> by_step = draws(logits, choice, kDraws);
    CHECK(fits(by_step, expected.p));
    std::vector<int> by_seed;
    for (int seed = 0; seed < kDraws; ++seed) {
      choice = base;
      choice.seed = seed;
      by_seed.push_back(sampled(logits, choice));
    }
    CHECK(fits(by_seed, expected.p));
    // A row's place among the others is no part of its draw.
    const std::vector<int> equal = sampled_rows(std::vector(64, logits), std::vector(64, base));
    CHECK(llvm::all_equal(equal));
    // This number of draws tells a distribution from its neighbours.
    choice = base;
    choice.temperature *= 1.25;
    CHECK_FALSE(fits(by_step, Probabilities(logits, choice).p));
    // Following draws are independent: pairs of them are distributed as the product.
    if (base.top_k == 0) continue;
    std::vector<int> pairs;
    std::vector<double> p;
    for (int step = 0; step + 1 < kDraws; step += 2)
      pairs.push_back(by_step[step] * 10 + by_step[step + 1]);
    for (double first : expected.p)
      for (double second : expected.p) p.push_back(first * second);
    CHECK(fits(pairs, p));
  }
}

TEST_CASE("seed and step alone change the draw") {
  // Two draws from 1000 equal logits agree by chance once in 1000; more than 3 of 64 draws agree
  // with probability below 64^4 / 4! / 1000^4 < 10^-6.
  const std::vector<double> row(1000, 0.25);
  const std::vector<int> once = draws(row, {.seed = 1}, 65), other = draws(row, {.seed = 2}, 65);
  const auto agreeing = [](const std::vector<int>& a, size_t shift, const std::vector<int>& b) {
    int count = 0;
    for (size_t i = 0; i < 64; ++i) count += a[i + shift] == b[i];
    return count;
  };
  CHECK(draws(row, {.seed = 1}, 65) == once);
  CHECK(agreeing(once, 0, other) <= 3);
  CHECK(agreeing(once, 1, once) <= 3);
  // A call's rows draw for themselves, whatever the others are and wherever they stand: as alone.
  std::vector<Choice> choices(64, Choice{.seed = 1});
  const std::vector<int> together = sampled_rows(std::vector(64, row), choices);
  CHECK(together == std::vector<int>(64, once[0]));
  std::vector<std::vector<double>> changed(64, row);
  for (size_t n = 0; n < 63; ++n) changed[n][n] = 50;
  for (size_t n = 0; n < 63; ++n)
    choices[n] = {.temperature = 0.5, .top_k = 3, .seed = static_cast<int>(n), .step = 8};
  CHECK(sampled_rows(changed, choices)[63] == together[63]);
}

TEST_CASE("sampling_target is the least weight that is at least top_p of all") {
  // Totals below 2^29 times a float of 24 bits are exact in double.
  const std::vector<double> totals = values_of(random_tensor(DType::i32, {200}, 1, 0x1p29 - 1, 1));
  const std::vector<double> top_ps = values_of(random_tensor(DType::f32, {200}, 0, 1, 2));
  for (size_t i = 0; i < 200; ++i) {
    const auto target = static_cast<double>(
        sampling_target(static_cast<float>(top_ps[i]), static_cast<uint64_t>(totals[i])));
    CHECK(target >= top_ps[i] * totals[i]);
    CHECK(target - 1 < top_ps[i] * totals[i]);
  }
  CHECK(sampling_target(0.5f, 10) == 5);
  CHECK(sampling_target(0.5f, 11) == 6);
  CHECK(sampling_target(0.0f, 10) == 1);
  CHECK(sampling_target(1.0f, uint64_t{1} << 60) == uint64_t{1} << 60);
  CHECK(sampling_target(0.99f, 0) == 1);
}

}  // namespace
}  // namespace sinter::host_eval_sample_test
