// The bound of `verify --self` against its formula, worked out by hand.
#include "driver/verify/loss_bound.h"

#include <doctest/doctest.h>

#include <cmath>

#include "ir/text.h"
#include "support/result.h"

namespace sinter::loss_bound_test {
namespace {

/// V of a module's entry @f at N = 3.
double variance_of(const std::string& body, const char* result) {
  const Module module = value(parse_module(
      "module @m {\n  symbol N in [1, 8]\n  weight %w : bf16[32, 64] = constant {value = 1}\n"
      "  entry @f(%x: bf16[N, 64], %a: f32[N, 64]) -> (" +
          std::string(result) + ") {\n" + body + "  }\n}\n",
      "m.sir"));
  return relative_variance(module.entries[0].graph, module.symbols, {3});
}

constexpr double kBf16 = 0x1p-16 / 3, kF32 = 0x1p-48 / 3;  // u^2 / 3

TEST_CASE("each rounding adds the variance of its type") {
  CHECK(variance_of("    %y = neg %a : f32[N, 64]\n", "%y") == doctest::Approx(kF32));
  CHECK(variance_of("    %y = neg %x : bf16[N, 64]\n    %z = exp %y : bf16[N, 64]\n", "%z") ==
        doctest::Approx(2 * kBf16));
}

TEST_CASE("views and inputs add nothing") {
  CHECK(variance_of("    %y = reshape %x : bf16[64, N]\n", "%y") == 0);
}

TEST_CASE("a sum of n terms adds n / 2 roundings of float32") {
  CHECK(variance_of("    %y = reduce_sum %a {axes = [1]} : f32[N, 1]\n", "%y") ==
        doctest::Approx(kF32 * (1 + 64 / 2)));
  // A product's multiplications count as its additions do.
  CHECK(variance_of("    %y = linear %x, %w : bf16[N, 32]\n", "%y") ==
        doctest::Approx(kBf16 + kF32 * 128 / 2));
}

TEST_CASE("of two branches the longer chain counts") {
  CHECK(variance_of("    %y = neg %x : bf16[N, 64]\n    %z = exp %y : bf16[N, 64]\n"
                    "    %s = add %z, %x : bf16[N, 64]\n",
                    "%s") == doctest::Approx(3 * kBf16));
}

TEST_CASE("the bound is four deviations of the mean loss, whatever is added to a row") {
  HostTensor logits = value(make_tensor(DType::f32, {2, 4}));
  for (float shift : {0.0f, 100.0f}) {
    const float rows[] = {-1, 1, -1, 1, 3, -3, 3, -3};  // deviations 1 and 3
    for (size_t i = 0; i < 8; ++i) logits.data<float>()[i] = rows[i] + shift;
    CHECK(loss_bound(1e-4, logits) == doctest::Approx(4 * std::sqrt(2 * 1e-4 * 5 / 2.0)));
  }
}

}  // namespace
}  // namespace sinter::loss_bound_test
