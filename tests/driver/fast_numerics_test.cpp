// Fast numerics: the errors of golden models and random graphs against float64 over 16 seeds, and
// that a broken bound is seen.
#include <fstream>

#include "differential/ended_outside.h"
#include "differential/generate.h"
#include "driver/small_models.h"
#include "driver/verify/report.h"
#include "driver/verify/verify.h"
#include "golden/models.h"
#include "ir/text.h"
#include "runtime/temporary_directory.h"

namespace sinter::fast_numerics_test {
namespace {

VerifyOptions fast() {
  VerifyOptions options;
  options.backend = cpu();
  options.compile.fusion.numerics = Numerics::fast;
  return options;
}

TEST_CASE("golden models, each of one 16-bit type, are as close to float64 as without fusion") {
  double worst_rms = 0, worst_max = 0;
  VerifyOptions options = fast();
  size_t turn = 0;
  for (const std::string& name : golden_models()) {
    if (name == "phi3_longrope_long") continue;  // takes 16 tokens at a time
    options.dtypes = {turn++ % 2 == 0 ? DType::f16 : DType::bf16};
    CAPTURE(name);
    const VerifyReport report = value(verify_model(SINTER_TESTS_DIR "/golden/" + name, options));
    CHECK_MESSAGE(report.passed(), verify_text(report));
    for (const DTypeReport& one : report.dtypes) {
      CHECK(one.bounds.size() == (is_golden_encoder(name) ? 1 : 2));  // prefill and decode
      for (const ErrorBound& bound : one.bounds) {
        CHECK(bound.fused.elements > 0);
        // Roundings went: the errors are others.
        CHECK(bound.fused.squares != bound.unfused.squares);
        if (bound.chooses) continue;
        worst_rms = std::max(worst_rms, bound.fused.rms() / bound.unfused.rms());
        worst_max = std::max(worst_max, bound.fused.mean_max() / bound.unfused.mean_max());
      }
    }
  }
  MESSAGE("RMS at most ", worst_rms, " of the unfused plan's, mean maximum ", worst_max);
}

TEST_CASE("float32 has no roundings inside kernels: the same bits") {
  VerifyOptions options = fast();
  options.dtypes = {DType::f32};
  for (const std::string& name : kGoldenModels) {
    CAPTURE(name);
    const VerifyReport report = value(verify_model(SINTER_TESTS_DIR "/golden/" + name, options));
    for (const ErrorBound& bound : report.dtypes[0].bounds) {
      CHECK(bound.fused.squares == bound.unfused.squares);
      CHECK(bound.fused.max == bound.unfused.max);
    }
  }
}

TEST_CASE(
    "a product with GELU is Sinter's own in strict numerics, in fast ones where that was asked "
    "for") {
  const Module module = value(parse_module(R"(module @m {
  entry @main(%x: bf16[16384, 64], %w: bf16[1024, 64]) -> (%y) {
    %p = linear %x, %w : bf16[16384, 1024]
    %y = gelu_tanh %p : bf16[16384, 1024]
  }
}
)",
                                           "test"));
  const auto is_own = [&](Numerics numerics, Recipe::Products products) {
    CompileOptions options;
    options.fusion.numerics = numerics;
    options.recipe.products = products;
    const Module frozen = value(freeze(module, {}, {}, pass_options(options)));
    return llvm::any_of(frozen.entries[0].graph.ops(),
                        [](const Op& op) { return order_of(op) == Order::tiled_linear; });
  };
  CHECK(is_own(Numerics::strict, Recipe::Products::automatic));
  CHECK_FALSE(is_own(Numerics::fast, Recipe::Products::automatic));
  CHECK(is_own(Numerics::fast, Recipe::Products::own));
}

TEST_CASE("random graphs: hardly a value is farther off than the bounds") {
  // A value of a few elements may be, by chance: two of a hundred.
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/random.sir";
  int64_t values = 0, broken = 0, changed = 0;
  for (uint64_t seed = 3200; seed < 3280; ++seed) {
    std::ofstream(path) << print_module(generate(seed).module);
    VerifyOptions options = fast();
    options.open.random_weights = seed;
    const Result<VerifyReport> verified = verify_model(path, options);
    // Row numbers that the module computes may name no row, which is an error after the call.
    if (ended_outside(verified)) continue;
    const VerifyReport report = value(verified);
    for (const ErrorBound& bound : report.dtypes[0].bounds) {
      ++values;
      broken += !bound.holds();
      changed += bound.fused.squares != bound.unfused.squares;
    }
  }
  CAPTURE(values);
  CAPTURE(changed);
  CHECK(values > 200);
  CHECK(changed > 30);
  CHECK(50 * broken <= values);
}

HostTensor floats(std::vector<float> values) {
  HostTensor tensor{DType::f32, {static_cast<int64_t>(values.size())}, {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  tensor.bytes.assign(bytes, bytes + values.size() * sizeof(float));
  return tensor;
}

TEST_CASE("bounds: RMS over all calls, maxima averaged over them, an ulp more") {
  const HostTensor exact = floats({1, 2, 3, 4});
  const auto bound_of = [&](std::vector<float> fused, std::vector<float> unfused) {
    std::vector<ErrorBound> bounds;
    REQUIRE(add_errors("v", floats(fused), floats(unfused), exact, bounds).has_value());
    REQUIRE(add_errors("v", exact, exact, exact, bounds).has_value());
    REQUIRE(bounds.size() == 1);
    return bounds[0];
  };
  const ErrorBound same = bound_of({1.5, 2, 3, 4}, {1, 2.5, 3, 4});
  CHECK(same.holds());
  CHECK(same.fused.elements == 8);
  CHECK(same.fused.rms() == doctest::Approx(0.5 / std::sqrt(8.0)));
  CHECK(same.fused.max == 0.5);
  CHECK(same.fused.mean_max() == 0.25);
  CHECK(same.ulp == 0x1p-23);
  CHECK(bound_of({1.5, 2, 3, 4}, {1.48f, 2, 3, 4}).holds());
  CHECK(!bound_of({1.5, 2, 3, 4}, {1.47f, 2, 3, 4}).holds());  // RMS
  // As large an RMS, of one error instead of four.
  CHECK(!bound_of({2, 2, 3, 4}, {1.5, 2.5, 3.5, 4.5}).holds());
  CHECK(bound_of({1.7f, 2.7f, 3, 4}, {1.5, 2.5, 3.5, 4.5}).holds());
  CHECK(!bound_of({NAN, 2, 3, 4}, {1.5, 2, 3, 4}).holds());
  CHECK(bound_of({1, 2, 3, 4}, {1, 2, 3, 4}).holds());
}

TEST_CASE("a reference is not what fast numerics are compared with") {
  VerifyOptions options = fast();
  options.reference = SINTER_TESTS_DIR "/golden/gpt2/reference.safetensors";
  const auto with_reference = verify_model(SINTER_TESTS_DIR "/golden/gpt2", options);
  REQUIRE(!with_reference);
  CHECK(with_reference.error().code == ExitCode::usage);
}

}  // namespace
}  // namespace sinter::fast_numerics_test
