// Quantized matrices: packed and dequantized against the definition in float64; products in the
// stated order, written down here, and against float64.
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/eval_case.h"
#include "support/packed_weights.h"

namespace sinter::host_eval_quantized_test {
namespace {

using test::random_codes;
using test::StoredCodes;

/// Lengths of short and long rows, of short groups at their ends, and of no multiple of anything.
constexpr int64_t kLengths[] = {1, 7, 8, 136, 256, 512, 1000, 1023, 1024, 1288, 2312};

Module dequantized(const StoredCodes& stored) {
  return module_of(
      fmt::format("%p: i32[{}, {}]", stored.rows, row_words(stored.format, stored.length)),
      fmt::format("%y = dequantize %p {{size = {}, codes = \"{}\"}} : f32[{}, {}]", stored.length,
                  to_string(stored.format), stored.rows, stored.length));
}

/// `how`: "splits = N", or an order.
Module product(const StoredCodes& stored, std::string_view dtype, std::string_view how) {
  return module_of(
      fmt::format("%x: {}[3, {}], %p: i32[{}, {}], %b: {}[{}]", dtype, stored.length, stored.rows,
                  row_words(stored.format, stored.length), dtype, stored.rows),
      fmt::format("%y = quantized_linear %x, %p, %b {{size = {}, {}, codes = \"{}\"}} : "
                  "{}[3, {}]",
                  stored.length, how, to_string(stored.format),
                  how.starts_with("dtype = f32") ? "f32" : dtype, stored.rows));
}

TEST_CASE("every code has its value, of every place in a word") {
  for (const CodeFormat& format : test::code_formats())
    for (uint32_t bits = 0; bits < 1u << format.bits(); ++bits)
      for (int k = 0; k < 32 / format.bits(); ++k) {
        const uint32_t word = ~((~bits & ((1u << format.bits()) - 1)) << (k * format.bits()));
        const double wanted = test::defined_value(format.code, bits);
        const auto got = static_cast<double>(code_value(format.code, word, k));
        CHECK((std::isnan(wanted) ? std::isnan(got) : got == wanted));
        CHECK(std::signbit(got) == (std::isnan(wanted) ? std::signbit(got) : std::signbit(wanted)));
      }
}

TEST_CASE("a packed matrix is dequantized to scale * (code - zero) - minimum") {
  uint64_t seed = 1;
  for (const CodeFormat& format : test::code_formats())
    for (int64_t length : kLengths) {
      CAPTURE(to_string(format));
      CAPTURE(length);
      const StoredCodes stored = random_codes(format, 3, length, seed++);
      const auto got = values_of(evaluated(dequantized(stored), {stored.packed()}));
      const auto precise =
          values_of(evaluated(dequantized(stored), {stored.packed()}, {0, 0}, {.precise = true}));
      REQUIRE(got.size() == stored.values.size());
      for (size_t i = 0; i < got.size(); ++i) {
        // The exact value needs at most 24 + 9 bits, and the minimum's: one rounding.
        REQUIRE(got[i] == doctest::Approx(stored.values[i]).epsilon(1e-6));
        REQUIRE(static_cast<float>(precise[i]) == static_cast<float>(stored.values[i]));
        if (!format.minima) REQUIRE(got[i] == static_cast<float>(stored.values[i]));
      }
    }
}

TEST_CASE("products of packed rows are those of the dequantized matrix") {
  uint64_t seed = 100;
  for (const CodeFormat& format : test::code_formats())
    for (int64_t length : {8, 136, 512, 1000, 1288, 2312})
      for (const char* dtype : {"f32", "f16", "bf16"}) {
        CAPTURE(to_string(format));
        CAPTURE(length);
        const StoredCodes stored = random_codes(format, 5, length, seed++);
        const DType type = *parse_dtype(dtype);
        const HostTensor x = random_tensor(type, {3, length}, -1, 1, seed);
        const HostTensor bias = random_tensor(type, {5}, -1, 1, seed + 1);
        // A zero that is none of the codes' own values is rounded by the order of tensor cores.
        const bool tiles = seed % 2 == 0 && type != DType::f32 &&
                           (format.code != Code::uint8 || type == DType::f16);
        const std::string how =
            tiles ? "order = tiled_codes" : fmt::format("splits = {}", int64_t{1} << seed % 3);
        const Module module = product(stored, dtype, how);
        const std::vector<HostTensor> inputs = {x, stored.packed(), bias};
        const auto got = values_of(evaluated(module, inputs));
        const auto precise = values_of(evaluated(module, inputs, {0, 0}, {.precise = true}));
        const auto rows = values_of(x), biases = values_of(bias);
        for (int64_t n = 0; n < 3; ++n)
          for (int64_t m = 0; m < 5; ++m) {
            double sum = biases[static_cast<size_t>(m)], magnitude = std::abs(sum);
            for (int64_t k = 0; k < length; ++k) {
              const double term = rows[static_cast<size_t>(n * length + k)] *
                                  stored.values[static_cast<size_t>(m * length + k)];
              sum += term, magnitude += std::abs(term);
            }
            // Products with codes larger than the elements cancel where there is a zero or a
            // minimum: their magnitude bounds the error.
            const auto i = static_cast<size_t>(n * 5 + m);
            const double bound = 40 * magnitude * static_cast<double>(length) * 0x1p-24;
            REQUIRE(std::abs(got[i] - sum) <= bound + ulp(type, sum));
            // Float64 of the same order; the result is kept in float32.
            REQUIRE(std::abs(precise[i] - sum) <= std::abs(sum) * 0x1p-23 + bound * 0x1p-28);
          }
      }
}

TEST_CASE("each group is added by itself, in the order of lanes") {
  // Two rounds of 4-bit codes: lane 0 has the chunks 0 and 32, of the groups 0 and 2.
  const StoredCodes stored =
      random_codes(*parse_code_format("uint4 g128 f32 zeros minima"), 1, 264, 7);
  const HostTensor x = random_tensor(DType::f32, {3, 264}, -1, 1, 8);
  const HostTensor bias = tensor(DType::f32, {1}, {0.25});
  const auto got =
      values_of(evaluated(product(stored, "f32", "splits = 1"), {x, stored.packed(), bias}));
  const auto* scales = reinterpret_cast<const float*>(stored.scales.data());
  const auto* minima = reinterpret_cast<const float*>(stored.minima.data());
  for (int n = 0; n < 3; ++n) {
    float lanes[32] = {};
    for (int chunk = 0; chunk < 33; ++chunk) {
      float s1 = 0, s2 = 0;
      for (int e = 0; e < 8; ++e) {
        const int k = 8 * chunk + e;
        const auto code =
            static_cast<uint32_t>(stored.words[static_cast<size_t>(k / 8)]) >> 4 * e & 15;
        const float element = x.data<float>()[n * 264 + k];
        s1 = std::fma(static_cast<float>(code) -
                          static_cast<float>(stored.zeros[static_cast<size_t>(k / 128)]),
                      element, s1);
        s2 += element;
      }
      float& sum = lanes[chunk % 32];
      sum = std::fma(scales[chunk / 16], s1, sum);
      sum = std::fma(-minima[chunk / 16], s2, sum);
    }
    for (int stride = 1; stride < 32; stride *= 2)
      for (int l = 0; l < 32; l += 2 * stride) lanes[l] += lanes[l + stride];
    CHECK(got[static_cast<size_t>(n)] == lanes[0] + 0.25f);
  }
}

TEST_CASE("tiled_codes adds the runs of each half of a step, and a group by itself") {
  const StoredCodes stored =
      random_codes(*parse_code_format("uint4 g64 f32 zeros minima"), 1, 520, 9);
  const HostTensor x = random_tensor(DType::f16, {3, 520}, -1, 1, 10);
  const HostTensor bias = tensor(DType::f16, {1}, {0.25});
  const Module module = product(stored, "f16", "dtype = f32, order = tiled_codes");
  const auto elements = values_of(x);
  const auto got = values_of(evaluated(module, {x, stored.packed(), bias}));
  const auto* scales = reinterpret_cast<const float*>(stored.scales.data());
  const auto* minima = reinterpret_cast<const float*>(stored.minima.data());
  for (int n = 0; n < 3; ++n) {
    float sum = 0;
    for (const int run : {0, 256, 512, 128, 384})
      for (int group = run; group < std::min(run + 128, 520); group += 64) {
        float s1 = 0, s2 = 0;
        for (int step = group; step < std::min(group + 64, 520); step += 16) {
          double exact = s1, elements_exact = s2;
          for (int k = step; k < std::min(step + 16, 520); ++k) {
            const auto code =
                static_cast<uint32_t>(stored.words[static_cast<size_t>(k / 8)]) >> k % 8 * 4 & 15;
            const double element = elements[static_cast<size_t>(n * 520 + k)];
            exact +=
                (code - static_cast<double>(stored.zeros[static_cast<size_t>(k / 64)])) * element;
            elements_exact += element;
          }
          s1 = static_cast<float>(exact), s2 = static_cast<float>(elements_exact);
        }
        sum = std::fma(scales[group / 64], s1, sum);
        sum = std::fma(-minima[group / 64], s2, sum);
      }
    CHECK(got[static_cast<size_t>(n)] == sum + 0.25f);
  }
}

}  // namespace
}  // namespace sinter::host_eval_quantized_test
