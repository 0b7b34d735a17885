// Reductions: bit for bit the order of the contract, simulated here as threads and lanes would do
// it; norms and softmax against float64.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"

namespace sinter::host_eval_reduce_test {
namespace {

/// The butterfly as 'lanes' threads run it, all of them, in lock step.
float simulate(const std::vector<float>& row, size_t lanes, bool sum) {
  const auto combine = [sum](float a, float b) { return sum ? a + b : math::maximum(a, b); };
  std::vector<float> value(lanes, sum ? 0.0f : -std::numeric_limits<float>::infinity());
  for (size_t i = 0; i < row.size(); ++i) {
    const size_t lane = i / 8 % lanes;
    value[lane] = combine(value[lane], row[i]);
  }
  for (size_t stride = 1; stride < lanes; stride *= 2) {
    std::vector<float> next(lanes);
    for (size_t lane = 0; lane < lanes; ++lane)
      next[lane] = combine(value[lane], value[lane ^ stride]);
    value = next;
  }
  for (float other : value) CHECK(math::float_bits(other) == math::float_bits(value[0]));
  return value[0];
}

size_t expected_lanes(size_t length) {
  size_t lanes = 1;
  while (lanes * 8 < length && lanes < 1024) lanes *= 2;
  return lanes;
}

std::vector<float> random_row(size_t length, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> row(length);
  for (float& value : row)
    value = std::ldexp(static_cast<float>(static_cast<int64_t>(random()) >> 40),
                       static_cast<int>(random() % 20) - 30);
  return row;
}

HostTensor row_tensor(const std::vector<float>& row, std::vector<int64_t> dims) {
  return tensor(DType::f32, std::move(dims), std::vector<double>(row.begin(), row.end()));
}

TEST_CASE("the order of a row, for lengths around every boundary") {
  for (int64_t length :
       {0, 1, 7, 8, 9, 16, 17, 31, 33, 127, 129, 1023, 1025, 4095, 8192, 8193, 20000}) {
    CAPTURE(length);
    const std::vector<float> row = random_row(static_cast<size_t>(length), 7);
    const HostTensor x = row_tensor(row, {1, length});
    for (const char* op : {"reduce_sum", "reduce_max"}) {
      const bool sum = std::string_view(op) == "reduce_sum";
      const Module module = module_of(fmt::format("%x: f32[1, {}]", length),
                                      fmt::format("%y = {} %x {{axes = [1]}} : f32[1, 1]", op));
      const float got = evaluated(module, {x}).data<float>()[0];
      CHECK(math::float_bits(got) ==
            math::float_bits(simulate(row, expected_lanes(row.size()), sum)));
    }
    if (length > 4096) continue;
    // A symbolic length has 256 lanes, whatever its value.
    const Module module = module_of("%x: f32[1, N]", "%y = reduce_sum %x {axes = [1]} : f32[1, 1]");
    const float got = evaluated(module, {x}, {length, 0}).data<float>()[0];
    CHECK(math::float_bits(got) == math::float_bits(simulate(row, 256, true)));
  }
}

TEST_CASE("the order matters for these rows") {
  int upwards_differs = 0, lanes_differ = 0;
  for (uint64_t seed = 0; seed < 16; ++seed) {
    const std::vector<float> row = random_row(4095, seed);
    float upwards = 0;
    for (float value : row) upwards += value;
    upwards_differs += upwards != simulate(row, 512, true);
    lanes_differ += simulate(row, 256, true) != simulate(row, 512, true);
  }
  CHECK(upwards_differs > 8);
  CHECK(lanes_differ > 8);
}

TEST_CASE("any set of axes: a row is its elements in row-major order") {
  const std::vector<int64_t> dims = {3, 5, 4, 7};
  const std::vector<float> values = random_row(3 * 5 * 4 * 7, 11);
  const HostTensor x = row_tensor(values, dims);
  for (int mask = 1; mask < 16; ++mask) {
    std::vector<int64_t> axes, result(dims);
    for (int axis = 0; axis < 4; ++axis)
      if (mask >> axis & 1) {
        axes.push_back(axis);
        result[axis] = 1;
      }
    CAPTURE(mask);
    const Module module =
        module_of("%x: f32[3, 5, 4, 7]",
                  fmt::format("%y = reduce_sum %x {{axes = [{}]}} : f32[{}, {}, {}, {}]",
                              fmt::join(axes, ", "), result[0], result[1], result[2], result[3]));
    const HostTensor got = evaluated(module, {x});
    std::vector<std::vector<float>> rows(static_cast<size_t>(got.volume()));
    for (int64_t i = 0; i < 3 * 5 * 4 * 7; ++i) {
      const int64_t index[] = {i / 140, i / 28 % 5, i / 7 % 4, i % 7};
      int64_t row = 0;
      for (int axis = 0; axis < 4; ++axis)
        row = row * result[axis] + (mask >> axis & 1 ? 0 : index[axis]);
      rows[row].push_back(values[i]);
    }
    for (size_t row = 0; row < rows.size(); ++row)
      CHECK(math::float_bits(got.data<float>()[row]) ==
            math::float_bits(simulate(rows[row], expected_lanes(rows[row].size()), true)));
  }
}

TEST_CASE("sums of i32 wrap around, maxima start at the least number") {
  const auto reduce = [](std::string_view op, std::vector<double> row) {
    const int64_t length = static_cast<int64_t>(row.size());
    const Module module = module_of(fmt::format("%x: i32[{}]", length),
                                    fmt::format("%y = {} %x {{axes = [0]}} : i32[1]", op));
    const HostTensor x = tensor(DType::i32, {length}, row);
    CHECK(evaluated(module, {x}, {0, 0}, {.precise = true}).bytes == evaluated(module, {x}).bytes);
    return values_of(evaluated(module, {x}))[0];
  };
  CHECK(reduce("reduce_sum", {1, -2, 30}) == 29);
  CHECK(reduce("reduce_sum", {16777216, 1}) == 16777217);  // no float
  CHECK(reduce("reduce_sum", {2147483647, 2}) == -2147483647);
  CHECK(reduce("reduce_sum", {}) == 0);
  CHECK(reduce("reduce_max", {-7, -2, -30}) == -2);
  CHECK(reduce("reduce_max", {16777216, 16777217}) == 16777217);
  CHECK(reduce("reduce_max", {}) == -2147483648.0);
}

TEST_CASE("sums start at +0, maxima at -inf, and NaN stays") {
  const auto reduce = [](std::string_view op, std::vector<double> row) {
    const int64_t length = static_cast<int64_t>(row.size());
    return values_of(evaluated(module_of(fmt::format("%x: f16[{}]", length),
                                         fmt::format("%y = {} %x {{axes = [0]}} : f16[1]", op)),
                               {tensor(DType::f16, {length}, row)}))[0];
  };
  CHECK_FALSE(std::signbit(reduce("reduce_sum", {-0.0, -0.0})));
  CHECK(std::signbit(reduce("reduce_max", {-0.0, -0.0})));
  CHECK_FALSE(std::signbit(reduce("reduce_max", {-0.0, 0.0})));
  CHECK(reduce("reduce_max", {}) == -INFINITY);
  CHECK(reduce("reduce_sum", {}) == 0);
  CHECK(std::isnan(reduce("reduce_max", {1, NAN, 2})));
  CHECK(std::isnan(reduce("reduce_max", {NAN, INFINITY})));
  CHECK_FALSE(std::signbit(reduce("reduce_sum", {-0.0})));
  CHECK_FALSE(std::signbit(reduce("reduce_max", {0.0, -0.0})));
  const auto added = [](const std::string& op, int64_t count) {
    return values_of(evaluated(
        module_of(fmt::format("%x: f16[{}, 1], %i: i32[{}]", count, count), "%y = " + op),
        {tensor(DType::f16, {count, 1}, std::vector<double>(static_cast<size_t>(count), -0.0)),
         tensor(DType::i32, {count}, std::vector<double>(static_cast<size_t>(count), 0))}));
  };
  for (const double sum : added("cumulative_sum %x {axis = 0} : f16[3, 1]", 3))
    CHECK_FALSE(std::signbit(sum));
  CHECK_FALSE(std::signbit(added("scatter_add %i, %x {rows = 1} : f16[1, 1]", 3)[0]));
  CHECK(reduce("reduce_sum", {60000, 60000, -60000}) == 60000);  // no overflow on the way
  CHECK(reduce("reduce_sum", {60000, 60000}) == INFINITY);       // but in the result
}

TEST_CASE("softmax: special rows are as in PyTorch") {
  const Module module = module_of("%x: f32[6, 3]", "%y = softmax %x : f32[6, 3]");
  const HostTensor x = tensor(DType::f32, {6, 3},
                              {-INFINITY, -INFINITY, -INFINITY,  // nothing to see
                               INFINITY, 0, 0,                   //
                               NAN, 0, 0,                        //
                               -INFINITY, 5, -INFINITY,          // one key
                               1000, 1000, -1000,                // no overflow
                               -0.0, 0.0, 0.0});
  const std::vector<double> y = values_of(evaluated(module, {x}));
  for (int i = 0; i < 9; ++i) CHECK(std::isnan(y[i]));
  CHECK(std::vector<double>(y.begin() + 9, y.begin() + 15) ==
        std::vector<double>{0, 1, 0, 0.5, 0.5, 0});
  CHECK(y[15] == y[17]);
}

TEST_CASE("softmax and norms against float64") {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    CAPTURE(to_string(dtype));
    const int64_t rows = 3, width = 200;
    const std::string type(to_string(dtype));
    const HostTensor x = random_tensor(dtype, {rows, width}, -3, 5, 21);
    const HostTensor w = random_tensor(dtype, {width}, 0.5, 1.5, 22);
    const HostTensor b = random_tensor(dtype, {width}, -1, 1, 23);
    const std::vector<double> xs = values_of(x), ws = values_of(w), bs = values_of(b);
    const std::string parameters = fmt::format("%x: {0}[N, 200], %w: {0}[200], %b: {0}[200]", type);
    const auto run = [&](std::string_view op, bool precise) {
      return values_of(
          evaluated(module_of(parameters, fmt::format("%y = {} : {}[N, 200]", op, type)), {x, w, b},
                    {rows, 0}, {.precise = precise}));
    };
    for (bool precise : {true, false}) {
      const auto softmax = run("softmax %x", precise);
      const auto layer = run("layer_norm %x, %w, %b {eps = 0x1p-10}", precise);
      const auto rms = run("rms_norm %x, %w {eps = 0x1p-10}", precise);
      const DType kept = precise ? DType::f32 : dtype;
      // float32 inside; rms_norm rounds twice more in the element type.
      const auto close = [&](double got, double expected, double scale, double roundings) {
        return std::abs(got - expected) <= 64 * 0x1p-24 * scale + roundings * ulp(kept, expected);
      };
      int wrong = 0;
      for (int64_t row = 0; row < rows; ++row) {
        const double* values = &xs[row * width];
        double mean = 0, variance = 0, squares = 0, sum = 0;
        for (int64_t i = 0; i < width; ++i) {
          mean += values[i] / width;
          squares += values[i] * values[i] / width;
          sum += std::exp(values[i]);
        }
        for (int64_t i = 0; i < width; ++i) variance += std::pow(values[i] - mean, 2) / width;
        for (int64_t i = 0; i < width; ++i) {
          const int64_t at = row * width + i;
          const double probability = std::exp(values[i]) / sum;
          wrong += !close(softmax[at], probability, probability, 0.51);
          const double normal = (values[i] - mean) / std::sqrt(variance + 0x1p-10);
          wrong += !close(layer[at], normal * ws[i] + bs[i], 4, 0.51);
          const double root = values[i] / std::sqrt(squares + 0x1p-10) * ws[i];
          wrong += !close(rms[at], root, std::abs(root), 2.1);
        }
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("rms_norm: squares of f16 values beyond 65504 do not overflow") {
  const Module module =
      module_of("%x: f16[1, 4], %w: f16[4]", "%y = rms_norm %x, %w {eps = 0x1p-20} : f16[1, 4]");
  const HostTensor x = tensor(DType::f16, {1, 4}, {60000, -60000, 60000, 60000});
  const HostTensor w = tensor(DType::f16, {4}, {1, 1, 1, 2});
  CHECK(values_of(evaluated(module, {x, w})) == std::vector<double>{1, -1, 1, 2});
}

TEST_CASE("rms_norm rounds before the weight") {
  const Module module = module_of("%x: bf16[1, 64], %w: bf16[64]",
                                  "%y = rms_norm %x, %w {eps = 0x1p-40} : bf16[1, 64]");
  const HostTensor x = random_tensor(DType::bf16, {1, 64}, -2, 2, 31);
  const HostTensor w = random_tensor(DType::bf16, {64}, 1, 2, 32);
  const std::vector<double> xs = values_of(x), ws = values_of(w);
  const std::vector<double> got = values_of(evaluated(module, {x, w}));
  const auto round = [](double v) {
    return static_cast<double>(math::bf16_to_float(math::double_to_bf16(v)));
  };
  double squares = 0;
  for (double value : xs) squares += value * value / 64;
  int twice = 0, once = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    const double normal = xs[i] / std::sqrt(squares);
    twice += got[i] == round(round(normal) * ws[i]);
    once += got[i] == round(normal * ws[i]);
  }
  CHECK(twice == 64);
  CHECK(once < 60);
}

}  // namespace
}  // namespace sinter::host_eval_reduce_test
