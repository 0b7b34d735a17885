// Running sums, and reductions over leading axes, against sums in float64 that follow no order of
// the contract: within the tolerance of their type and length, NaNs and infinities where float64
// has them, zeros with their sign.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/compare.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_sums_test {
namespace {

constexpr int64_t kLengths[] = {0, 1, 2, 31, 32, 33, 1023, 1024, 1025, 1 << 20};
constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Columns of x [n, columns], row-major.
struct Columns {
  std::vector<double> x;
  int64_t n, columns;
  double at(int64_t i, int64_t column) const { return x[i * columns + column]; }

  std::vector<double> running_sums(bool reverse, bool exclusive) const {
    std::vector<double> y(x.size());
    for (int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = reverse ? n - 1 - i : i;
        const double before = sum;
        sum += at(row, column);
        y[row * columns + column] = exclusive ? before : sum;
      }
    }
    return y;
  }
  std::vector<double> sums() const {
    std::vector<double> y(static_cast<size_t>(columns), 0.0);
    for (size_t i = 0; i < x.size(); ++i) y[i % columns] += x[i];
    return y;
  }
  std::vector<double> maxima() const {
    std::vector<double> y(static_cast<size_t>(columns), -kInfinity);
    for (size_t i = 0; i < x.size(); ++i) {
      double& most = y[i % columns];
      if (std::isnan(x[i]) || x[i] > most) most = std::isnan(most) ? most : x[i];
    }
    return y;
  }
};

HostTensor running_sums(const HostTensor& x, bool reverse, bool exclusive) {
  const std::string type = fmt::format("{}[{}]", to_string(x.dtype), fmt::join(x.dims, ", "));
  return evaluated(
      module_of(
          "%x: " + type,
          fmt::format("%y = cumulative_sum %x {{axis = 0, reverse = {}, exclusive = {}}} : {}",
                      int{reverse}, int{exclusive}, type)),
      {x});
}

/// Over the first `axes` axes of x.
HostTensor reduced(std::string_view op, const HostTensor& x, size_t axes) {
  std::vector<int64_t> over, kept = x.dims;
  for (size_t axis = 0; axis < axes; ++axis)
    over.push_back(static_cast<int64_t>(axis)), kept[axis] = 1;
  return evaluated(
      module_of(fmt::format("%x: {}[{}]", to_string(x.dtype), fmt::join(x.dims, ", ")),
                fmt::format("%y = {} %x {{axes = [{}]}} : {}[{}]", op, fmt::join(over, ", "),
                            to_string(x.dtype), fmt::join(kept, ", "))),
      {x});
}

void check_near(const HostTensor& got, const std::vector<double>& expected, int64_t length) {
  const auto excess = exceeds(got, expected, tolerance(got.dtype, length));
  REQUIRE(excess.has_value());
  const Excess worst = excess->value_or(Excess{});
  CHECK_MESSAGE(!excess->has_value(), worst.count << " elements, number " << worst.index << " is "
                                                  << worst.value << ", not " << worst.reference);
}

HostTensor random_columns(DType dtype, std::vector<int64_t> dims, uint64_t seed) {
  const bool real = is_float(dtype);
  return random_tensor(dtype, std::move(dims), real ? -1 : -1000, real ? 1 : 1000, seed);
}

/// Columns with infinities, NaNs and zeros of both signs among ones: `n` >= 2 rows of 7.
Columns special_columns(int64_t n) {
  Columns made{std::vector<double>(static_cast<size_t>(7 * n), 1.0), n, 7};
  const auto set = [&](int64_t i, int64_t column, double value) { made.x[i * 7 + column] = value; };
  set(n / 2, 0, kInfinity);
  set(n / 2, 1, -kInfinity);
  set(n / 3, 2, kInfinity), set(n - 1, 2, -kInfinity);
  set(n / 2, 3, kNaN);
  set(n / 3, 4, kNaN), set(n - 1, 4, kInfinity);
  for (int64_t i = 0; i < n; ++i) set(i, 5, -0.0), set(i, 6, i % 2 == 0 ? -0.0 : 0.0);
  return made;
}

}  // namespace

TEST_CASE("running sums down columns of every length against float64") {
  uint64_t seed = 100;
  for (int64_t n : kLengths)
    for (DType dtype : kTypes)
      for (int form = 0; form < 4; ++form) {
        const bool is_long = n > 2000;
        if (is_long && form != static_cast<int>(dtype) % 4) continue;
        CAPTURE(n);
        CAPTURE(to_string(dtype));
        CAPTURE(form);
        const bool reverse = (form & 1) != 0, exclusive = (form & 2) != 0;
        const int64_t columns = is_long ? 1 : 3;
        const HostTensor x = random_columns(dtype, {n, columns}, ++seed);
        const Columns reference{values_of(x), n, columns};
        check_near(running_sums(x, reverse, exclusive), reference.running_sums(reverse, exclusive),
                   n);
      }
}

TEST_CASE("reductions over leading axes of every length against float64") {
  uint64_t seed = 500;
  for (int64_t n : kLengths)
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(n);
      CAPTURE(to_string(dtype));
      const HostTensor x = random_columns(dtype, {n, 3}, ++seed);
      const Columns reference{values_of(x), n, 3};
      check_near(reduced("reduce_sum", x, 1), reference.sums(), n);
      CHECK(values_of(reduced("reduce_max", x, 1)) == reference.maxima());
      if (n > 2000) continue;
      const HostTensor pair = random_columns(dtype, {2, n, 5}, ++seed);
      const Columns rows{values_of(pair), 2 * n, 5};
      check_near(reduced("reduce_sum", pair, 2), rows.sums(), 2 * n);
      CHECK(values_of(reduced("reduce_max", pair, 2)) == rows.maxima());
    }
}

TEST_CASE("sums of infinities, NaNs and zeros are those of float64") {
  for (int64_t n : {2, 31, 32, 33, 1023, 1024, 1025})
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(n);
      CAPTURE(to_string(dtype));
      const Columns special = special_columns(n);
      const HostTensor x = tensor(dtype, {n, 7}, special.x);
      for (int form = 0; form < 4; ++form) {
        CAPTURE(form);
        const bool reverse = (form & 1) != 0, exclusive = (form & 2) != 0;
        const HostTensor y = running_sums(x, reverse, exclusive);
        check_near(y, special.running_sums(reverse, exclusive), n);
        const std::vector<double> values = values_of(y);
        int negative_zeros = 0;
        for (double value : values) negative_zeros += value == 0 && std::signbit(value);
        CHECK(negative_zeros == 0);
      }
      const HostTensor sum = reduced("reduce_sum", x, 1), most = reduced("reduce_max", x, 1);
      check_near(sum, special.sums(), n);
      check_near(most, special.maxima(), n);
      const std::vector<double> sums = values_of(sum), maxima = values_of(most);
      CHECK_FALSE(std::signbit(sums[5]));
      CHECK_FALSE(std::signbit(sums[6]));
      CHECK(std::signbit(maxima[5]));
      CHECK_FALSE(std::signbit(maxima[6]));
    }
}

}  // namespace sinter::host_eval_sums_test
