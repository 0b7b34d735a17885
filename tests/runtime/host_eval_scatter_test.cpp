// scatter_add: the sums in ascending order, written down here; and against float64.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_scatter_test {
namespace {

using V = std::vector<double>;

Module scatter(std::string_view dtype, int64_t columns, std::string_view rows,
               std::string_view checked = "") {
  return module_of(fmt::format("%i: i32[N], %u: {}[N, {}]", dtype, columns),
                   fmt::format("%y = scatter_add %i, %u {{rows = {}{}}} : {}[{}, {}]", rows,
                               checked, dtype, rows, columns));
}

TEST_CASE("a row is the sum of its updates, rows that none names are +0") {
  const HostTensor index = tensor(DType::i32, {4}, {2, 0, 2, 2});
  const HostTensor updates = tensor(DType::f16, {4, 2}, {1, -0.0, 3, 4, 10, -0.0, 100, 8});
  const HostTensor y = evaluated(scatter("f16", 2, "M"), {index, updates}, {4, 4});
  CHECK(values_of(y) == V{3, 4, 0, 0, 111, 8, 0, 0});
  const HostTensor zeros = tensor(DType::f16, {1, 1}, {-0.0});
  const V sum =
      values_of(evaluated(scatter("f16", 1, "1"), {tensor(DType::i32, {1}, {0}), zeros}, {1, 0}));
  CHECK_FALSE(std::signbit(sum[0]));  // the sum begins with +0
}

TEST_CASE("sums are added in ascending order in float32 and rounded once") {
  std::mt19937 random(3);
  constexpr int64_t kCount = 3000, kRows = 7;
  std::vector<double> numbers(kCount);
  for (double& number : numbers) number = random() % kRows;
  const HostTensor index = tensor(DType::i32, {kCount}, numbers);
  int order_matters = 0;
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const HostTensor updates = random_tensor(dtype, {kCount, 3}, -1, 1, 5);
    const V u = values_of(updates);
    const Module module = scatter(to_string(dtype), 3, "7");
    const V got = values_of(evaluated(module, {index, updates}, {kCount, 0}));
    const V precise =
        values_of(evaluated(module, {index, updates}, {kCount, 0}, {.precise = true}));
    std::vector<float> up(kRows * 3, 0.0f), down(kRows * 3, 0.0f);
    V exact(kRows * 3, 0.0);
    const auto place = [&](int64_t n, int64_t d) {
      return static_cast<size_t>(numbers[static_cast<size_t>(n)]) * 3 + static_cast<size_t>(d);
    };
    for (int64_t n = 0; n < kCount; ++n)
      for (int64_t d = 0; d < 3; ++d) {
        up[place(n, d)] += static_cast<float>(u[static_cast<size_t>(3 * n + d)]);
        exact[place(n, d)] += u[static_cast<size_t>(3 * n + d)];
        const int64_t back = kCount - 1 - n;
        down[place(back, d)] += static_cast<float>(u[static_cast<size_t>(3 * back + d)]);
      }
    for (size_t i = 0; i < up.size(); ++i) {
      CHECK(got[i] == values_of(tensor(dtype, {1}, {up[i]}))[0]);
      CHECK(std::abs(precise[i] - exact[i]) <= ulp(DType::f32, exact[i]));
      order_matters += up[i] != down[i];
    }
  }
  CHECK(order_matters > 20);
}

TEST_CASE("a number that names no row is an error, or where it is checked adds nothing") {
  const HostTensor updates = tensor(DType::f32, {3, 1}, {1, 2, 4});
  for (double number :
       {-1.0, 3.0, static_cast<double>(INT32_MAX), static_cast<double>(INT32_MIN)}) {
    const HostTensor index = tensor(DType::i32, {3}, {2, number, 2});
    CHECK(eval_error(scatter("f32", 1, "3"), {index, updates}, {3, 0}).find("at position 1") !=
          std::string::npos);
    CHECK(values_of(evaluated(scatter("f32", 1, "3", ", checked = 1"), {index, updates}, {3, 0})) ==
          V{0, 0, 5});
  }
}

}  // namespace
}  // namespace sinter::host_eval_scatter_test
