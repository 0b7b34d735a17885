// top_k, expert_linear, expert_sum and sorted rows on the host: their rules written down here, and
// float64.
#include <doctest/doctest.h>

#include <cmath>
#include <random>

#include "runtime/eval_case.h"
#include "support/packed_weights.h"

namespace sinter::host_eval_experts_test {
namespace {

using V = std::vector<double>;

TEST_CASE("top_k: larger first, equal ones by position, NaN before all") {
  const auto chosen = [](V row, int count) {
    const auto columns = static_cast<int64_t>(row.size());
    const Module module =
        module_of(fmt::format("%x: f32[N, {}]", columns),
                  fmt::format("%y = top_k %x {{count = {0}}} : i32[N, {0}]", count));
    const HostTensor x = tensor(DType::f32, {1, columns}, row);
    const V result = values_of(evaluated(module, {x}, {1, 0}));
    CHECK(values_of(evaluated(module, {x}, {1, 0}, {.precise = true})) == result);
    return result;
  };
  CHECK(chosen({1, 3, 3, 3, 2, 3}, 2) == V{1, 2});
  CHECK(chosen({0, -0.0, 0, -1}, 4) == V{0, 1, 2, 3});
  CHECK(chosen({-INFINITY, 5, NAN, INFINITY, -NAN}, 5) == V{2, 4, 3, 1, 0});
  CHECK(chosen({-1, -2, -1e-42, -3}, 3) == V{2, 0, 1});
}

TEST_CASE("expert_linear: each row of a token by the matrix of its expert") {
  std::mt19937 random(5);
  for (const bool shared : {false, true})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      constexpr int64_t kTokens = 6, kChosen = 3, kExperts = 4, kRows = 5, kLength = 300;
      const auto name = to_string(dtype);
      const Module module =
          module_of(fmt::format("%x: {0}[N, {1}300], %w: {0}[4, 5, 300], %e: i32[N, 3]", name,
                                shared ? "" : "3, "),
                    fmt::format("%y = expert_linear %x, %w, %e : {}[N, 3, 5]", name));
      const HostTensor x = shared ? random_tensor(dtype, {kTokens, kLength}, -1, 1, 1)
                                  : random_tensor(dtype, {kTokens, kChosen, kLength}, -1, 1, 1);
      const HostTensor w = random_tensor(dtype, {kExperts, kRows, kLength}, -1, 1, 2);
      V numbers(kTokens * kChosen);
      for (double& number : numbers) number = random() % kExperts;
      const HostTensor experts = tensor(DType::i32, {kTokens, kChosen}, numbers);
      const V got = values_of(evaluated(module, {x, w, experts}, {kTokens, 0}));
      const V of_x = values_of(x), of_w = values_of(w);
      for (size_t i = 0; i < got.size(); ++i) {
        const size_t pair = i / kRows;
        const double* row = &of_x[(shared ? pair / kChosen : pair) * kLength];
        const double* line =
            &of_w[(static_cast<size_t>(numbers[pair]) * kRows + i % kRows) * kLength];
        double sum = 0, size = 0;
        for (int64_t k = 0; k < kLength; ++k) {
          sum += row[k] * line[k];
          size += std::abs(row[k] * line[k]);
        }
        // Additions of a lane and of the butterfly, then one rounding.
        CHECK(std::abs(got[i] - sum) <= 20 * 0x1p-24 * size + ulp(dtype, sum) / 2);
      }
    }
}

TEST_CASE("expert_linear of codes: float64, and quantized_linear with the matrix of an expert") {
  for (const CodeFormat& format : test::code_formats())
    for (const int64_t length : {8, 1030, 264}) {
      CAPTURE(to_string(format));
      CAPTURE(length);
      constexpr int64_t kTokens = 2, kExperts = 3, kRows = 4;
      const int64_t words = row_words(format, length);
      const auto codes = fmt::format("size = {}, codes = \"{}\"", length, to_string(format));
      const test::StoredCodes stored =
          test::random_codes(format, kExperts * kRows, length, static_cast<uint64_t>(length));
      HostTensor matrices = stored.packed();
      matrices.dims = {kExperts, kRows, words};
      const HostTensor x = random_tensor(DType::f32, {kTokens, length}, -1, 1, 3);
      const V numbers = {2, 0, 1, 2}, of_x = values_of(x);
      const std::vector<HostTensor> inputs = {x, matrices,
                                              tensor(DType::i32, {kTokens, 2}, numbers)};
      const Module module =
          module_of(fmt::format("%x: f32[2, {}], %w: i32[3, 4, {}], %e: i32[2, 2]", length, words),
                    fmt::format("%y = expert_linear %x, %w, %e {{{}}} : f32[2, 2, 4]", codes));
      const V got = values_of(evaluated(module, inputs));
      const V precise = values_of(evaluated(module, inputs, {0, 0}, {.precise = true}));
      for (size_t i = 0; i < got.size(); ++i) {
        const double* row = &of_x[i / (2 * kRows) * static_cast<size_t>(length)];
        const double* line_of_matrix =
            &stored.values[(static_cast<size_t>(numbers[i / kRows]) * kRows + i % kRows) *
                           static_cast<size_t>(length)];
        double sum = 0, size = 0;
        for (int64_t k = 0; k < length; ++k) {
          sum += row[k] * line_of_matrix[k];
          size += std::abs(row[k] * line_of_matrix[k]);
        }
        // Codes that are larger than the elements cancel where there is a zero or a minimum.
        const double bound = 40 * size * static_cast<double>(length) * 0x1p-24;
        CHECK(std::abs(got[i] - sum) <= bound);
        CHECK(std::abs(precise[i] - sum) <= std::abs(sum) * 0x1p-23 + bound * 0x1p-28);
      }
      if (length % 8 != 0) continue;
      HostTensor last = *make_tensor(DType::i32, {kRows, words});
      std::copy_n(matrices.bytes.end() - static_cast<int64_t>(last.bytes.size()), last.bytes.size(),
                  last.bytes.begin());
      const Module both = module_of(
          fmt::format("%x: f32[2, {0}], %w: i32[3, 4, {1}], %e: i32[2, 1], %m: i32[4, {1}]", length,
                      words),
          fmt::format("%y = expert_linear %x, %w, %e {{{0}}} : f32[2, 1, 4]\n%o = reshape %y : "
                      "f32[2, 4]\n%q = quantized_linear %x, %m {{splits = 1, {0}}} : f32[2, 4]\n"
                      "%d = sub %o, %q : f32[2, 4]",
                      codes),
          "%d");
      const HostTensor second = tensor(DType::i32, {kTokens, 1}, {2, 2});
      CHECK(values_of(evaluated(both, {x, matrices, second, last})) == V(kTokens * kRows, 0.0));
    }
}

TEST_CASE("expert_linear: a number that names no expert is an error, or 0 where it is checked") {
  const HostTensor x = tensor(DType::f32, {1, 2}, {1, 2}),
                   w = tensor(DType::f32, {2, 1, 2}, {1, 1, 3, 4});
  const auto module = [](std::string_view checked) {
    return module_of("%x: f32[N, 2], %w: f32[2, 1, 2], %e: i32[N, 3]",
                     fmt::format("%y = expert_linear %x, %w, %e{} : f32[N, 3, 1]", checked));
  };
  for (const double number : {-1.0, 2.0}) {
    const HostTensor experts = tensor(DType::i32, {1, 3}, {1, number, 0});
    CHECK(
        eval_error(module(""), {x, w, experts}, {1, 0}).find("at position 1 is not one of the 2") !=
        std::string::npos);
    CHECK(values_of(evaluated(module(" {checked = 1}"), {x, w, experts}, {1, 0})) == V{11, 0, 3});
  }
}

TEST_CASE("expert_sum: by rank, products rounded to the type of the weights") {
  const auto sum = [](std::string_view weights, const HostTensor& x, const HostTensor& w) {
    const Module module = module_of(fmt::format("%x: f16[N, 3, 1], %w: {}[N, 3]", weights),
                                    "%y = expert_sum %x, %w : f16[N, 1]");
    return values_of(evaluated(module, {x, w}, {1, 0}))[0];
  };
  // 1 + 2^-7 squared is 1 + 2^-6 + 2^-14; f16 leaves the last part out.
  const double x = 1 + 0x1p-7;
  const HostTensor rows = tensor(DType::f16, {1, 3, 1}, {x, -1, 0x1p-7});
  CHECK(sum("f16", rows, tensor(DType::f16, {1, 3}, {x, 1, 0})) == 0x1p-6);
  CHECK(sum("f32", rows, tensor(DType::f32, {1, 3}, {x, 1, 0})) == 0x1p-6 + 0x1p-14);
  // In float32 by rank: 2^-24 is lost beside 1, and not beside 0.
  const HostTensor small = tensor(DType::f16, {1, 3, 1}, {0x1p-24, 1, -1});
  const HostTensor ones = tensor(DType::f32, {1, 3}, {1, 1, 1});
  CHECK(sum("f32", small, ones) == 0);
  CHECK(sum("f32", tensor(DType::f16, {1, 3, 1}, {1, -1, 0x1p-24}), ones) == 0x1p-24);
}

TEST_CASE("sorted rows: by number, equal ones by position, numbers of no run last") {
  const HostTensor numbers = tensor(DType::i32, {3, 2}, {2, 0, -1, 2, 0, 3});
  const auto sorted = [&](std::string_view op, std::string_view type) {
    const Module module =
        module_of("%e: i32[N, 2]", fmt::format("%y = {} %e {{count = 3}} : {}", op, type));
    return values_of(evaluated(module, {numbers}, {3, 0}));
  };
  CHECK(sorted("sorted_positions", "i32[N, 2]") == V{1, 4, 0, 3, 2, 5});
  CHECK(sorted("sorted_places", "i32[N, 2]") == V{2, 0, 4, 3, 1, 5});
  CHECK(sorted("run_ends", "i32[3]") == V{2, 2, 4});
}

TEST_CASE("embedding counts the rows of a table over all axes but the last") {
  const HostTensor x = tensor(DType::i32, {2, 2, 1}, {5, 6, 7, 8}),
                   rows = tensor(DType::i32, {2, 2}, {3, -1, 4, 1});
  const Module module = module_of("%x: i32[N, 2, 1], %r: i32[N, 2]",
                                  "%y = embedding %x, %r {checked = 1} : i32[N, 2, 1]");
  CHECK(values_of(evaluated(module, {x, rows}, {2, 0})) == V{8, 0, 0, 6});
}

TEST_CASE("grouped_linear counts rows over all axes but the last") {
  const Module module = module_of("%x: f16[N, 2, 8], %w: f16[2, 1, 8], %e: i32[2]",
                                  "%y = grouped_linear %x, %w, %e : f16[N, 2, 1]");
  V x(4 * 8), w(2 * 8);
  for (size_t row = 0; row < 4; ++row) x[row * 8] = static_cast<double>(row + 1);
  w[0] = 1;
  w[8] = 10;
  const HostTensor result =
      evaluated(module,
                {tensor(DType::f16, {2, 2, 8}, x), tensor(DType::f16, {2, 1, 8}, w),
                 tensor(DType::i32, {2}, {1, 3})},
                {2, 0});
  CHECK(values_of(result) == V{1, 20, 30, 0});
}

}  // namespace
}  // namespace sinter::host_eval_experts_test
