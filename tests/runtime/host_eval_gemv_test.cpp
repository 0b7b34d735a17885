// gemv against float64, and against its order of summation written down once more.
#include <doctest/doctest.h>

#include <cmath>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_gemv_test {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};
constexpr int64_t kRows = 5;  // of the matrix

struct Case {
  DType dtype;
  int64_t length, splits;
  bool bias;

  Module module() const {
    const std::string type(to_string(dtype));
    return module_of(fmt::format("%x: {0}[{3}, {1}], %w: {0}[{2}, {1}], %b: {0}[{2}]", type, length,
                                 kRows, tokens),
                     fmt::format("%y = linear %x, %w{} {{order = gemv, splits = {}}} : {}[{}, {}]",
                                 bias ? ", %b" : "", splits, type, tokens, kRows));
  }
  int64_t tokens = 8;
};

std::vector<HostTensor> inputs_of(const Case& c) {
  const auto seed = static_cast<uint64_t>(c.length * 100 + c.splits);
  return {random_tensor(c.dtype, {c.tokens, c.length}, -2, 2, seed),
          random_tensor(c.dtype, {kRows, c.length}, -1, 1, seed + 1),
          random_tensor(c.dtype, {kRows}, -1, 1, seed + 2)};
}

/// The order of kernels/gemv/order.h, lane by lane.
double in_order(const double* w, const double* x, int64_t length, int64_t splits) {
  const int64_t chunks = length / 8;
  int64_t part = (chunks + splits - 1) / splits;
  while (part % 32 != 0) ++part;
  float sum = 0;
  for (int64_t s = 0; s < splits; ++s) {
    float lane[32] = {};
    for (int64_t chunk = s * part; chunk < std::min((s + 1) * part, chunks); ++chunk)
      for (int64_t i = 8 * chunk; i < 8 * chunk + 8; ++i)
        lane[(chunk - s * part) % 32] = std::fma(static_cast<float>(w[i]), static_cast<float>(x[i]),
                                                 lane[(chunk - s * part) % 32]);
    for (int stride = 1; stride < 32; stride *= 2) {
      float next[32];
      for (int l = 0; l < 32; ++l) next[l] = lane[l] + lane[l ^ stride];
      std::copy(next, next + 32, lane);
    }
    sum = s == 0 ? lane[0] : sum + lane[0];
  }
  return sum;
}

double in_float64(const double* w, const double* x, int64_t length, double& magnitude) {
  double sum = 0;
  for (int64_t i = 0; i < length; ++i) sum += w[i] * x[i], magnitude += std::abs(w[i] * x[i]);
  return sum;
}

void check(const Case& c) {
  const std::string name = fmt::format("{}, {} elements, {} splits, bias {}, {} tokens",
                                       to_string(c.dtype), c.length, c.splits, c.bias, c.tokens);
  CAPTURE(name);
  const auto inputs = inputs_of(c);
  const auto x = values_of(inputs[0]), w = values_of(inputs[1]), b = values_of(inputs[2]);
  const HostTensor result = evaluated(c.module(), inputs);
  const auto y = values_of(result),
             precise = values_of(evaluated(c.module(), inputs, {0, 0}, {.precise = true}));
  std::vector<double> sums;
  for (int64_t n = 0; n < c.tokens; ++n)
    for (int64_t m = 0; m < kRows; ++m) {
      const double *row = &w[m * c.length], *token = &x[n * c.length];
      const auto sum = static_cast<float>(in_order(row, token, c.length, c.splits));
      sums.push_back(c.bias ? sum + static_cast<float>(b[m]) : sum);
      const double bias = c.bias ? b[m] : 0;
      double magnitude = std::abs(bias);
      const double exact = in_float64(row, token, c.length, magnitude) + bias;
      const size_t at = sums.size() - 1;
      // Fewer additions than elements on any element's way to the result, then one rounding.
      const double bound =
          static_cast<double>(c.length) * 0x1p-24 * magnitude + ulp(c.dtype, exact);
      CHECK_MESSAGE(std::abs(y[at] - exact) <= bound, y[at], " instead of ", exact);
      CHECK_MESSAGE(std::abs(precise[at] - exact) <= 0x1p-40 * magnitude + ulp(c.dtype, exact),
                    precise[at], " instead of ", exact);
    }
  CHECK(result.bytes == tensor(c.dtype, {c.tokens, kRows}, sums).bytes);
}

}  // namespace

TEST_CASE("gemv: sums in the stated order, for all splits and lengths") {
  // One chunk; a lane's second chunk missing; whole and broken parts; parts that are empty.
  for (DType dtype : kFloats)
    for (int64_t length : {8, 16, 248, 256, 264, 1000, 2048, 4104})
      for (int64_t splits : {1, 2, 4, 8, 16})
        for (bool bias : {false, true}) check({dtype, length, splits, bias, 3});
}

TEST_CASE("gemv: every number of tokens") {
  for (int64_t tokens = 1; tokens <= 8; ++tokens) check({DType::bf16, 520, 2, true, tokens});
}

TEST_CASE("gemv: the numbers of parts and the order of lanes decide about bits") {
  // If these bits were equal, the tests above could not tell the orders apart.
  const auto inputs = inputs_of({DType::f32, 4104, 1, false});
  const auto bytes = [&](int64_t splits) {
    return evaluated(Case{DType::f32, 4104, splits, false}.module(), inputs).bytes;
  };
  CHECK(bytes(1) != bytes(2));
  CHECK(bytes(2) != bytes(4));
}

TEST_CASE("gemv: a token's bits do not depend on the others") {
  const Case all{DType::f16, 1000, 2, true};
  auto inputs = inputs_of(all);
  const HostTensor together = evaluated(all.module(), inputs);
  Case one = all;
  one.tokens = 1;
  inputs[0] = tensor(DType::f16, {1, 1000}, [&] {
    const auto x = values_of(inputs[0]);
    return std::vector<double>(x.begin() + 5000, x.begin() + 6000);
  }());
  const HostTensor alone = evaluated(one.module(), inputs);
  CHECK(std::equal(alone.bytes.begin(), alone.bytes.end(), together.bytes.begin() + 5 * kRows * 2));
}

}  // namespace sinter::host_eval_gemv_test
