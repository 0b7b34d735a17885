// cumulative_sum: bit for bit the order of kernels/scan/order.h, written down here level by level;
// and against float64.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "ir/scalar_math.h"
#include "kernels/scan/order.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_scan_test {
namespace {

constexpr int64_t kLengths[] = {1,   2,   7,    8,    9,    31,   32,   33,   255,
                                256, 257, 1000, 4095, 4096, 4097, 9000, 20001};

/// Running sums of a row in the stated order, every level of a group for all of its chunks at once.
std::vector<float> ordered_sums(const std::vector<float>& x, bool exclusive) {
  const size_t n = x.size();
  std::vector<float> y(n);
  float tiles = 0, groups = 0;
  for (size_t group = 0; 256 * group < n; ++group) {
    const auto at = [&](size_t chunk, size_t e) {
      const size_t i = 256 * group + 8 * chunk + e;
      return i < n ? x[i] : 0.0f;
    };
    std::vector<float> v(32);
    for (size_t l = 0; l < 32; ++l) {
      v[l] = at(l, 0);
      for (size_t e = 1; e < 8; ++e) v[l] += at(l, e);
    }
    for (size_t run = 1; run < 32; run *= 2) {
      const std::vector<float> before = v;
      for (size_t l = 0; l < 32; ++l)
        if (l / run % 2 == 1) v[l] = before[l / run * run - 1] + before[l];
    }
    for (size_t i = 256 * group; i < std::min(n, 256 * (group + 1)); ++i) {
      const size_t l = i % 256 / 8;
      const float base = (tiles + groups) + (l == 0 ? 0.0f : v[l - 1]);
      const size_t end = exclusive ? i : i + 1;
      if (i - i % 8 == end) {
        y[i] = base;
        continue;
      }
      float sum = x[i - i % 8];
      for (size_t j = i - i % 8 + 1; j < end; ++j) sum += x[j];
      y[i] = base + sum;
    }
    groups += v[31];
    if (group % 16 == 15) {
      tiles += groups;
      groups = 0;
    }
  }
  return y;
}

/// The sum along axis 1 of [A, n, B].
Module sum_module(DType dtype, std::vector<int64_t> dims, int64_t axis, bool reverse,
                  bool exclusive) {
  const std::string type = fmt::format("{}[{}]", to_string(dtype), fmt::join(dims, ", "));
  return module_of("%x: " + type,
                   fmt::format("%y = cumulative_sum %x {{axis = {}, reverse = {}, exclusive = {}}} "
                               ": {}",
                               axis, int{reverse}, int{exclusive}, type));
}

std::vector<float> random_row(int64_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> row(static_cast<size_t>(length));
  for (float& value : row)
    value = std::ldexp(static_cast<float>(static_cast<int64_t>(random()) >> 40),
                       static_cast<int>(random() % 20) - 30);
  return row;
}

TEST_CASE("the order of running sums, for lengths around every boundary") {
  for (int64_t n : kLengths)
    for (int form = 0; form < 4; ++form) {
      CAPTURE(n);
      CAPTURE(form);
      const bool reverse = (form & 1) != 0, exclusive = (form & 2) != 0;
      std::vector<float> row = random_row(n, static_cast<uint64_t>(n));
      const HostTensor x = tensor(DType::f32, {n}, {row.begin(), row.end()});
      const HostTensor y = evaluated(sum_module(DType::f32, {n}, 0, reverse, exclusive), {x});
      if (reverse) std::reverse(row.begin(), row.end());
      std::vector<float> expected = ordered_sums(row, exclusive);
      if (reverse) std::reverse(expected.begin(), expected.end());
      int wrong = 0;
      for (int64_t i = 0; i < n; ++i)
        wrong += math::float_bits(y.data<float>()[i]) != math::float_bits(expected[i]);
      CHECK(wrong == 0);
    }
}

TEST_CASE("running sums against float64, along any axis") {
  const std::vector<std::vector<int64_t>> shapes = {
      {3, 257}, {257, 6}, {2, 33, 5}, {1, 1, 9000, 1}, {4097}};
  uint64_t seed = 0;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16})
    for (const auto& dims : shapes)
      for (size_t axis = 0; axis < dims.size(); ++axis)
        for (int form = 0; form < 8; ++form) {
          const bool reverse = (form & 1) != 0, exclusive = (form & 2) != 0, precise = form >= 4;
          const HostTensor x = random_tensor(dtype, dims, -1, 2, ++seed);
          const std::vector<double> xs = values_of(x);
          const std::vector<double> ys = values_of(
              evaluated(sum_module(dtype, dims, static_cast<int64_t>(axis), reverse, exclusive),
                        {x}, {0, 0}, {.precise = precise}));
          const int64_t n = dims[axis];
          int64_t inner = 1;
          for (size_t i = axis + 1; i < dims.size(); ++i) inner *= dims[i];
          const DType kept = precise ? DType::f32 : dtype;  // what values_of reads
          // Each addition has one rounding, relative to no more than all magnitudes together.
          const double rounding = precise ? 0x1p-52 * static_cast<double>(n)
                                          : 1.01 * 0x1p-24 * static_cast<double>(scan_additions(n));
          int wrong = 0;
          for (int64_t row = 0; row < x.volume() / n; ++row) {
            double sum = 0, magnitudes = 0;
            for (int64_t i = 0; i < n; ++i) {
              const int64_t at =
                  scan_position(i, n, reverse) * inner + row / inner * n * inner + row % inner;
              const double before = sum;
              sum += xs[at];
              magnitudes += std::abs(xs[at]);
              const double expected = exclusive ? before : sum;
              const double bound = rounding * magnitudes;
              wrong += !(std::abs(ys[at] - expected) <=
                         bound + 0.51 * ulp(kept, std::abs(expected) + bound));
            }
          }
          CAPTURE(to_string(dtype));
          CAPTURE(fmt::format("{}", fmt::join(dims, ", ")));
          CAPTURE(axis);
          CAPTURE(form);
          CHECK(wrong == 0);
        }
}

TEST_CASE("a row of 2^20 elements stays within the bound of its additions") {
  const int64_t n = kMaxScanned;
  const HostTensor x = random_tensor(DType::f32, {n}, -1, 1, 5);
  const HostTensor y = evaluated(sum_module(DType::f32, {n}, 0, false, false), {x});
  double sum = 0, magnitudes = 0;
  int wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += x.data<float>()[i];
    magnitudes += std::abs(x.data<float>()[i]);
    const double bound = 1.01 * 0x1p-24 * static_cast<double>(scan_additions(n)) * magnitudes;
    wrong += !(std::abs(y.data<float>()[i] - sum) <= bound);
  }
  CHECK(wrong == 0);
}

TEST_CASE("running sums of whole numbers wrap around") {
  for (bool reverse : {false, true})
    for (bool exclusive : {false, true}) {
      std::mt19937 random(3);
      const int64_t n = 5000;
      std::vector<int32_t> values(static_cast<size_t>(n));
      for (int32_t& value : values) value = static_cast<int32_t>(random());
      HostTensor x = i32_tensor(values);
      const HostTensor y = evaluated(sum_module(DType::i32, {n}, 0, reverse, exclusive), {x});
      uint32_t sum = 0;
      int wrong = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t at = scan_position(i, n, reverse);
        const uint32_t before = sum;
        sum += static_cast<uint32_t>(values[at]);
        wrong += static_cast<uint32_t>(y.data<int32_t>()[at]) != (exclusive ? before : sum);
      }
      CHECK(wrong == 0);
    }
}

TEST_CASE("running sums: zeros are +0, and NaN and infinities reach what follows alone") {
  const auto sums = [](std::vector<double> row, bool reverse, bool exclusive) {
    const auto n = static_cast<int64_t>(row.size());
    return values_of(evaluated(sum_module(DType::f16, {n}, 0, reverse, exclusive),
                               {tensor(DType::f16, {n}, row)}));
  };
  for (bool exclusive : {false, true})
    for (double zero : sums({-0.0, -0.0, 0.0}, false, exclusive)) CHECK_FALSE(std::signbit(zero));
  CHECK(sums({1, 2, 3}, false, false) == std::vector<double>{1, 3, 6});
  CHECK(sums({1, 2, 3}, true, false) == std::vector<double>{6, 5, 3});
  CHECK(sums({1, 2, 3}, false, true) == std::vector<double>{0, 1, 3});
  CHECK(sums({1, 2, 3}, true, true) == std::vector<double>{5, 3, 0});
  CHECK(sums({60000, 60000, -60000}, false, false) ==
        std::vector<double>{60000, INFINITY, 60000});  // float32 on the way
  std::vector<double> row(700, 1.0);
  row[300] = NAN;
  row[200] = INFINITY;
  const std::vector<double> forward = sums(row, false, false), backward = sums(row, true, false);
  CHECK(forward[199] == 200);
  CHECK(forward[200] == INFINITY);
  CHECK(forward[299] == INFINITY);
  CHECK(std::isnan(forward[300]));
  CHECK(std::isnan(forward[699]));
  CHECK(backward[301] == 399);
  CHECK(std::isnan(backward[300]));
}

TEST_CASE("running sums of no elements") {
  const Module module = module_of("%x: f32[N, M]", "%y = cumulative_sum %x {axis = 1} : f32[N, M]");
  for (const auto& [rows, n] : {std::pair{0, 3}, {3, 0}, {0, 0}}) {
    const HostTensor x = tensor(DType::f32, {rows, n}, {});
    CHECK(evaluated(module, {x}, {rows, n}).volume() == 0);
  }
}

}  // namespace
}  // namespace sinter::host_eval_scan_test
