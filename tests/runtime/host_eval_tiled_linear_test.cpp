// tiled_linear against float64, and against its order of summation written down once more.
#include <doctest/doctest.h>

#include <cmath>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_tiled_linear_test {
namespace {

constexpr int64_t kTokens = 3, kColumns = 5;

/// The order of kernels/products/order.h: steps of 16 products, each rounded once.
float in_order(const double* x, const double* w, int64_t length) {
  float sum = 0;
  for (int64_t begin = 0; begin < length; begin += 16) {
    double exact = sum;
    for (int64_t k = begin; k < std::min(begin + 16, length); ++k) exact += x[k] * w[k];
    sum = static_cast<float>(exact);
  }
  return sum;
}

double stored(float value, DType dtype) {
  if (dtype == DType::f32) return value;
  return dtype == DType::f16 ? math::f16_to_float(math::float_to_f16(value))
                             : math::bf16_to_float(math::float_to_bf16(value));
}

}  // namespace

TEST_CASE("tiled_linear sums in steps of 16, adds the bias and rounds once") {
  constexpr std::pair<DType, DType> kTypes[] = {{DType::f16, DType::f16},
                                                {DType::bf16, DType::bf16},
                                                {DType::f16, DType::f32},
                                                {DType::bf16, DType::f32}};
  for (const auto& [dtype, result] : kTypes)
    for (int64_t length : {8, 16, 24, 40, 264}) {
      CAPTURE(length);
      const std::string type(to_string(dtype));
      const Module module = module_of(
          fmt::format("%x: {0}[{2}, {1}], %w: {0}[{3}, {1}], %b: {0}[{3}]", type, length, kTokens,
                      kColumns),
          fmt::format(
              "%y = linear %x, %w, %b {{order = tiled_linear, dtype = {0}}} : {0}[{1}, {2}]",
              to_string(result), kTokens, kColumns));
      const auto seed = static_cast<uint64_t>(length);
      const std::vector<HostTensor> inputs = {
          random_tensor(dtype, {kTokens, length}, -2, 2, seed),
          random_tensor(dtype, {kColumns, length}, -1, 1, seed + 1),
          random_tensor(dtype, {kColumns}, -1, 1, seed + 2)};
      const std::vector<double> x = values_of(inputs[0]), w = values_of(inputs[1]),
                                b = values_of(inputs[2]);
      const std::vector<double> given = values_of(evaluated(module, inputs));
      const std::vector<double> precise =
          values_of(evaluated(module, inputs, {0, 0}, {.precise = true}));
      for (int64_t m = 0; m < kTokens; ++m)
        for (int64_t n = 0; n < kColumns; ++n) {
          const double *row = &x[m * length], *column = &w[n * length];
          const int64_t at = m * kColumns + n;
          const float sum = in_order(row, column, length) + static_cast<float>(b[n]);
          CHECK(given[at] == stored(sum, result));
          double exact = b[n];
          for (int64_t k = 0; k < length; ++k) exact += row[k] * column[k];
          CHECK(std::fabs(precise[at] - exact) <= ulp(DType::f32, exact));
        }
    }
}

TEST_CASE("grouped_linear multiplies each run of rows by a matrix of its own, the rest by none") {
  constexpr int64_t kLength = 24, kRows = 7;
  const Module module = module_of("%x: bf16[7, 24], %w: bf16[4, 5, 24], %e: i32[4]",
                                  "%y = grouped_linear %x, %w, %e : bf16[7, 5]");
  const HostTensor x = random_tensor(DType::bf16, {kRows, kLength}, -2, 2, 1),
                   w = random_tensor(DType::bf16, {4, kColumns, kLength}, -1, 1, 2);
  const std::vector<double> rows = values_of(x), matrices = values_of(w);
  const std::vector<double> given =
      values_of(evaluated(module, {x, w, tensor(DType::i32, {4}, {2, 2, 3, 6})}));
  constexpr int kRunOfRow[kRows] = {0, 0, 2, 3, 3, 3, 4};
  for (int64_t n = 0; n < kRows; ++n)
    for (int64_t m = 0; m < kColumns; ++m) {
      const int64_t run = kRunOfRow[n];
      const float sum = run == 4 ? 0
                                 : in_order(&rows[n * kLength],
                                            &matrices[(run * kColumns + m) * kLength], kLength);
      CHECK(given[n * kColumns + m] == stored(sum, DType::bf16));
    }
}

TEST_CASE("grouped_outer sums the products of each run's columns over the run's rows") {
  constexpr int64_t kRows = 37, kOfX = 8, kOfY = 16;
  constexpr int64_t kEnds[] = {0, 20, 20, 36};
  const Module module = module_of("%x: bf16[37, 8], %d: bf16[37, 16], %e: i32[4]",
                                  "%y = grouped_outer %x, %d, %e : bf16[4, 8, 16]");
  const HostTensor x = random_tensor(DType::bf16, {kRows, kOfX}, -2, 2, 1),
                   y = random_tensor(DType::bf16, {kRows, kOfY}, -1, 1, 2);
  const std::vector<double> of_x = values_of(x), of_y = values_of(y);
  const std::vector<double> given =
      values_of(evaluated(module, {x, y, tensor(DType::i32, {4}, {0, 20, 20, 36})}));
  for (int64_t run = 0, begin = 0; run < 4; begin = kEnds[run++])
    for (int64_t i = 0; i < kOfX; ++i)
      for (int64_t j = 0; j < kOfY; ++j) {
        std::vector<double> first, second;
        for (int64_t row = begin; row < kEnds[run]; ++row) {
          first.push_back(of_x[row * kOfX + i]);
          second.push_back(of_y[row * kOfY + j]);
        }
        const float sum = in_order(first.data(), second.data(), static_cast<int64_t>(first.size()));
        CHECK(given[(run * kOfX + i) * kOfY + j] == stored(sum, DType::bf16));
      }
}

}  // namespace sinter::host_eval_tiled_linear_test
