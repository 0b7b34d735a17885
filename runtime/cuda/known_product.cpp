#include "runtime/cuda/known_product.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/evaluate/host_view.h"

namespace sinter {
namespace {

constexpr int64_t kMaxExactSum = int64_t{1} << 24;  // of ones, in float32

float rounded(float value, DType dtype) {
  std::array<std::byte, sizeof(float)> bytes;
  store_run(&value, 1, storage_of(dtype), bytes.data());
  float result = 0;
  load_run(storage_of(dtype), bytes.data(), 1, 1, &result);
  return result;
}

/// An element, for messages; what was not written has no sign.
std::string text_of(const std::byte* at, DType dtype) {
  float value = 0;
  load_run(storage_of(dtype), at, 1, 1, &value);
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

/// The sum of A's k elements is kept where f16 can hold three times as much, and where GELU, by
/// whatever approximation of tanh, gives its argument.
float element_of_a(int64_t k) {
  constexpr int64_t kMin = 8, kMax = 16384;
  return k < kMin ? 8.0f : k > kMax ? 0x1p-10f : 1.0f;
}

}  // namespace

std::optional<KnownProduct> known_product(const GemmProblem& problem) {
  if (problem.k > kMaxExactSum) return std::nullopt;
  KnownProduct known;
  known.a = element_of_a(problem.k);
  const float sum = known.a * static_cast<float>(problem.k);
  // A sum may be rounded before its epilogue (sums_may_round_twice). If that changes it, bias and
  // residual are 0, so that both ways give the same.
  const bool exact = rounded(sum, problem.c.dtype) == sum &&
                     (!problem.bias || rounded(sum, problem.bias->dtype) == sum);
  known.added = exact ? sum : 0;
  float result = sum;
  if (problem.bias) result += known.added;
  if (problem.residual) result += known.added;
  known.result = activated(problem.activation, result);
  return known;
}

Status check_known_product(const GemmProblem& problem, const KnownProduct& known,
                           std::span<const std::byte> c) {
  const DType dtype = problem.c.dtype;
  const auto bytes = static_cast<size_t>(whole_bytes(dtype));
  SINTER_CHECK(c.size() == bytes * static_cast<size_t>(problem.span_c()), "{} bytes", c.size());
  std::array<std::byte, sizeof(float)> expected;
  store_run(&known.result, 1, storage_of(dtype), expected.data());

  int64_t wrong = 0;
  std::string first;
  const bool gaps = problem.span_c() != problem.batch * problem.m * problem.n;
  std::vector<bool> written(gaps ? static_cast<size_t>(problem.span_c()) : 0);
  for (int64_t copy = 0; copy < problem.batch; ++copy)
    for (int64_t i = 0; i < problem.m; ++i)
      for (int64_t j = 0; j < problem.n; ++j) {
        const auto at = static_cast<size_t>(copy * problem.c.batch_stride +
                                            i * problem.c.row_stride + j * problem.c.column_stride);
        if (gaps) written[at] = true;
        if (std::memcmp(&c[at * bytes], expected.data(), bytes) == 0) continue;
        if (wrong++ == 0)
          first = fmt::format("{} instead of {} in row {}, column {} of copy {}",
                              text_of(&c[at * bytes], dtype), text_of(expected.data(), dtype), i, j,
                              copy);
      }
  if (wrong > 0)
    return fail(
        fmt::format("elements that are wrong in a product with a known result: {} of {}; {}", wrong,
                    problem.batch * problem.m * problem.n, first),
        "product " + problem.key(), {}, ExitCode::device);
  for (size_t at = 0; at < written.size(); ++at)
    for (size_t i = 0; i < bytes; ++i)
      if (!written[at] && c[at * bytes + i] != kUnwritten)
        return fail(
            fmt::format("element {} after the first of C is written, which is none of C's", at),
            "product " + problem.key(), {}, ExitCode::device);
  return {};
}

}  // namespace sinter
