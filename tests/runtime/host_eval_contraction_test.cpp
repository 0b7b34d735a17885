// linear, einsum, attention and the product they share, against float64.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstring>

#include "ir/scalar_math.h"
#include "runtime/eval_case.h"
#include "runtime/evaluate/blas.h"

namespace sinter::host_eval_contraction_test {
namespace {

constexpr DType kFloats[] = {DType::f32, DType::f16, DType::bf16};

/// Rounding to `dtype` and the error of a float32 sum of terms of this total magnitude.
double tolerance(DType dtype, double expected, double magnitude) {
  return 0.51 * ulp(dtype, expected) + 32 * 0x1p-24 * magnitude;
}

TEST_CASE("linear with and without bias, of dense and strided operands") {
  for (DType dtype : kFloats)
    for (int64_t k : {1, 5, 300, 700}) {
      const std::string type(to_string(dtype));
      const HostTensor x = random_tensor(dtype, {2, k, 3}, -1, 1, 1);
      const HostTensor w = random_tensor(dtype, {37, k}, -1, 1, 2);
      const HostTensor b = random_tensor(dtype, {37}, -1, 1, 3);
      const std::vector<double> xs = values_of(x), ws = values_of(w), bs = values_of(b);
      for (bool biased : {false, true})
        for (bool precise : {false, true}) {
          const Module module =
              module_of(fmt::format("%x: {0}[2, {1}, 3], %w: {0}[37, {1}], %b: {0}[37]", type, k),
                        fmt::format("%t = transpose %x {{axes = [0, 2, 1]}} : {0}[2, 3, {1}]\n"
                                    "%y = linear %t, %w{2} : {0}[2, 3, 37]",
                                    type, k, biased ? ", %b" : ""));
          const std::vector<double> got =
              values_of(evaluated(module, {x, w, b}, {0, 0}, {.precise = precise}));
          int wrong = 0;
          for (int64_t row = 0; row < 6; ++row)
            for (int64_t j = 0; j < 37; ++j) {
              double sum = biased ? bs[j] : 0, magnitude = std::abs(sum);
              for (int64_t i = 0; i < k; ++i) {
                const double term = xs[(row / 3 * k + i) * 3 + row % 3] * ws[j * k + i];
                sum += term;
                magnitude += std::abs(term);
              }
              const double error = std::abs(got[row * 37 + j] - sum);
              wrong += error > (precise ? 0.51 * ulp(DType::f32, sum) + 0x1p-40 * magnitude
                                        : tolerance(dtype, sum, magnitude));
            }
          CHECK(wrong == 0);
        }
    }
}

TEST_CASE("einsum: batch, free and summed axes in any order") {
  const HostTensor q = random_tensor(DType::f16, {5, 2, 3, 4}, -1, 1, 1);  // n k g d
  const HostTensor keys = random_tensor(DType::f16, {6, 2, 4}, -1, 1, 2);  // t k d
  const std::vector<double> qs = values_of(q), ks = values_of(keys);
  const Module module =
      module_of("%q: f16[5, 2, 3, 4], %k: f16[6, 2, 4]",
                "%y = einsum %q, %k {dtype = f32, spec = \"nkgd,tkd->kgnt\"} : f32[2, 3, 5, 6]");
  const std::vector<double> got = values_of(evaluated(module, {q, keys}));
  int wrong = 0;
  for (int k = 0; k < 2; ++k)
    for (int g = 0; g < 3; ++g)
      for (int n = 0; n < 5; ++n)
        for (int t = 0; t < 6; ++t) {
          double sum = 0;
          for (int d = 0; d < 4; ++d)
            sum += qs[((n * 2 + k) * 3 + g) * 4 + d] * ks[(t * 2 + k) * 4 + d];
          wrong +=
              std::abs(got[((k * 3 + g) * 5 + n) * 6 + t] - sum) > tolerance(DType::f32, sum, 4);
        }
  CHECK(wrong == 0);
  // Back: probabilities of f16 times values, two summed letters, the result of the element type.
  const Module back = module_of("%p: f16[2, 3, 5], %v: f16[5, 2, 4]",
                                "%y = einsum %p, %v {spec = \"kgt,tkd->gd\"} : f16[3, 4]");
  const HostTensor p = random_tensor(DType::f16, {2, 3, 5}, 0, 1, 3);
  const HostTensor v = random_tensor(DType::f16, {5, 2, 4}, -1, 1, 4);
  const std::vector<double> ps = values_of(p), vs = values_of(v);
  const std::vector<double> sums = values_of(evaluated(back, {p, v}));
  for (int g = 0; g < 3; ++g)
    for (int d = 0; d < 4; ++d) {
      double sum = 0;
      for (int k = 0; k < 2; ++k)
        for (int t = 0; t < 5; ++t) sum += ps[(k * 3 + g) * 5 + t] * vs[(t * 2 + k) * 4 + d];
      CHECK(std::abs(sums[g * 4 + d] - sum) <= tolerance(DType::f16, sum, 10));
    }
}

TEST_CASE("gemm: strided operands and results give the bits of dense ones, close to float64") {
  const int64_t m = 37, n = 70, k = 519;
  const HostTensor a = random_tensor(DType::f32, {m, k}, -1, 1, 1);
  const HostTensor b = random_tensor(DType::f32, {k, n}, -1, 1, 2);
  const HostTensor bias = random_tensor(DType::f16, {n}, -1, 1, 3);
  const auto matrix = [](auto* data, DType dtype, int64_t row, int64_t column) {
    return ConstMatrix{reinterpret_cast<const std::byte*>(data), dtype, row, column};
  };
  const auto result = [](std::vector<float>& values, int64_t row, int64_t column) {
    return MutableMatrix{reinterpret_cast<std::byte*>(values.data()), DType::f32, row, column};
  };
  const ConstMatrix bias_row = matrix(bias.bytes.data(), DType::f16, 0, 1);
  std::vector<float> dense(m * n), again(m * n), wide(m * (n + 3), 7.0f);
  const auto product = [&](const float* left, int64_t row, int64_t column, std::vector<float>& into,
                           int64_t into_row) {
    gemm(matrix(left, DType::f32, row, column), matrix(b.data<float>(), DType::f32, n, 1),
         result(into, into_row, 1), m, n, k, {.bias = &bias_row});
  };
  product(a.data<float>(), k, 1, dense, n);
  product(a.data<float>(), k, 1, again, n);
  std::vector<float> transposed(m * k);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t l = 0; l < k; ++l) transposed[l * m + i] = a.data<float>()[i * k + l];
  product(transposed.data(), 1, m, wide, n + 3);
  int wrong = 0;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      const uint32_t bits = math::float_bits(dense[i * n + j]);
      wrong += bits != math::float_bits(again[i * n + j]);
      wrong += bits != math::float_bits(wide[i * (n + 3) + j]);
      double sum = math::f16_to_float(bias.data<uint16_t>()[j]);
      for (int64_t l = 0; l < k; ++l)
        sum += static_cast<double>(a.data<float>()[i * k + l]) * b.data<float>()[l * n + j];
      wrong += std::abs(dense[i * n + j] - sum) > tolerance(DType::f32, sum, k);
    }
    for (int64_t j = n; j < n + 3; ++j) wrong += wide[i * (n + 3) + j] != 7.0f;
  }
  CHECK(wrong == 0);
}

struct AttentionCase {
  int64_t heads, kv_heads, hd, vd;
  double softcap;  // 0: none
  int64_t window;  // 0: none
};

TEST_CASE("attention: grouped heads, softcap, window, several sequences") {
  const AttentionCase cases[] = {
      {4, 4, 8, 8, 0, 0}, {6, 2, 8, 4, 0, 0}, {4, 1, 16, 8, 5, 3}, {2, 2, 4, 4, 0, 1}};
  for (const AttentionCase& c : cases)
    for (DType dtype : kFloats)
      for (bool precise : {false, true}) {
        const std::string type(to_string(dtype));
        std::string attrs =
            fmt::format("heads = {}, kv_heads = {}, scale = 0x1p-1", c.heads, c.kv_heads);
        if (c.softcap > 0) attrs += fmt::format(", softcap = {:a}", c.softcap);
        if (c.window > 0) attrs += fmt::format(", window = {}", c.window);
        const Module module = module_of(
            fmt::format(
                "%q: {0}[N, {1}], %k: {0}[12, {2}], %v: {0}[12, {3}], %f: i32[N], %s: i32[N]", type,
                c.heads * c.hd, c.kv_heads * c.hd, c.kv_heads * c.vd),
            fmt::format("%y = attention %q, %k, %v, %f, %s {{{}}} : {}[N, {}]", attrs, type,
                        c.heads * c.vd));
        const HostTensor q = random_tensor(dtype, {4, c.heads * c.hd}, -2, 2, 1);
        const HostTensor k = random_tensor(dtype, {12, c.kv_heads * c.hd}, -2, 2, 2);
        const HostTensor v = random_tensor(dtype, {12, c.kv_heads * c.vd}, -1, 1, 3);
        const std::vector<double> firsts = {0, 0, 6, 11}, slots = {0, 5, 10, 11};
        const std::vector<double> got = values_of(evaluated(
            module, {q, k, v, tensor(DType::i32, {4}, firsts), tensor(DType::i32, {4}, slots)},
            {4, 0}, {.precise = precise}));
        const std::vector<double> qs = values_of(q), ks = values_of(k), vs = values_of(v);
        double error = 0;
        for (int64_t n = 0; n < 4; ++n)
          for (int64_t h = 0; h < c.heads; ++h) {
            const int64_t kv = h / (c.heads / c.kv_heads), slot = static_cast<int64_t>(slots[n]);
            int64_t first = static_cast<int64_t>(firsts[n]);
            if (c.window > 0) first = std::max(first, slot - c.window + 1);
            std::vector<double> out(c.vd);
            double total = 0;
            for (int64_t t = first; t <= slot; ++t) {
              double score = 0;
              for (int64_t i = 0; i < c.hd; ++i)
                score += qs[(n * c.heads + h) * c.hd + i] * ks[(t * c.kv_heads + kv) * c.hd + i];
              score *= 0.5;
              if (c.softcap > 0) score = c.softcap * std::tanh(score / c.softcap);
              total += std::exp(score);
              for (int64_t i = 0; i < c.vd; ++i)
                out[i] += std::exp(score) * vs[(t * c.kv_heads + kv) * c.vd + i];
            }
            for (int64_t i = 0; i < c.vd; ++i)
              error = std::max(error, std::abs(got[(n * c.heads + h) * c.vd + i] - out[i] / total));
          }
        // Probabilities and the result are rounded to the element type.
        CHECK(error <= (precise ? 0x1p-24 : 2 * ulp(dtype, 0.9) + 0x1p-20));
      }
}

TEST_CASE("an ascending product is a chain of fused multiply-adds, whatever its rows and columns") {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 1, 1}, {3, 70, 33}, {9, 64, 129}}) {
    const HostTensor a = random_tensor(DType::f32, {m, k}, -1, 1, 1);
    const HostTensor b = random_tensor(DType::f32, {n, k}, -1, 1, 2);
    std::vector<float> c(static_cast<size_t>(m * n));
    Epilogue epilogue;
    epilogue.ascending = true;
    CHECK(gemm({a.bytes.data(), DType::f32, k, 1}, {b.bytes.data(), DType::f32, 1, k},
               {reinterpret_cast<std::byte*>(c.data()), DType::f32, n, 1}, m, n, k, epilogue)
              .has_value());
    int wrong = 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (int64_t e = 0; e < k; ++e)
          sum = math::fma(a.data<float>()[i * k + e], b.data<float>()[j * k + e], sum);
        wrong += c[static_cast<size_t>(i * n + j)] != sum;
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("attention reads no row that a token does not see") {
  const Module module = module_of(
      "%q: f32[1, 2], %k: f32[3, 2], %f: i32[1], %s: i32[1]",
      "%y = attention %q, %k, %k, %f, %s {heads = 1, kv_heads = 1, scale = 0x1p+0} : f32[1, 2]");
  const HostTensor q = tensor(DType::f32, {1, 2}, {1, 1});
  const HostTensor k = tensor(DType::f32, {3, 2}, {NAN, NAN, 3, 4, INFINITY, NAN});
  const HostTensor one = tensor(DType::i32, {1}, {1}), three = tensor(DType::i32, {1}, {3});
  CHECK(values_of(evaluated(module, {q, k, one, one})) == std::vector<double>{3, 4});
  CHECK(eval_error(module, {q, k, one, three}).find("sees rows 1 .. 3 of 0 .. 2") !=
        std::string::npos);
  // Nothing to see: a softmax of nothing.
  for (double value : values_of(evaluated(module, {q, k, three, one}))) CHECK(std::isnan(value));
}

}  // namespace
}  // namespace sinter::host_eval_contraction_test
