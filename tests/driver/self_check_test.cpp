// `verify --self`: what it measures, and that it finds plans which are wrong.
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/generate/generate.h"
#include "driver/generate/perplexity.h"
#include "driver/self_case.h"
#include "driver/text.h"
#include "driver/verify/self_report.h"
#include "driver/verify/self_text.h"
#include "runtime/temporary_directory.h"

namespace sinter::self_check_test {
namespace {

const std::string kTinyLlama = SINTER_SAMPLES_DIR "/tiny-llama";

/// A small model with a given epsilon in its norms, and random weights that are always the same.
struct SmallModel {
  Model model;
  Plans plans;
};
SmallModel with_epsilon(double epsilon) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/small.json";
  std::ofstream(path) << fmt::format(
      R"({{"sinter_spec": 1, "name": "small", "dtype": "f32", "vocabulary": 97, "hidden": 48,
      "layers": 2, "heads": 4, "kv_heads": 2, "ffn": 80, "max_positions": 512,
      "norm": "rms_norm", "norm_eps": {}, "rope": {{"theta": 10000}}, "activation": "silu",
      "gated": true}})",
      epsilon);
  Model model = value(load_model(path, {.dtype = {}, .random_weights = 5, .streaming = {}}));
  Plans plans = value(make_plans(model, {}, *cpu()));
  return {std::move(model), std::move(plans)};
}

SelfReport check(const Plans& plans, const Model& model, const SelfLimits& limits = {}) {
  return value(check_self(plans, *model.spec, some_tokens(200, 3), self_on_cpu(), limits));
}

SelfReport decoder_report(const std::string& path, const SelfOptions& options) {
  return std::get<SelfReport>(value(verify_self(path, options)));
}

/// The bundled model's report in its own type.
const SelfReport& own_report() {
  static const SelfReport report = decoder_report(kTinyLlama, self_on_cpu());
  return report;
}

TEST_CASE(
    "the bundled text is predicted by a model with a tokenizer, in its own type and another") {
  for (const std::optional<DType> dtype : {std::optional<DType>(), {DType::bf16}}) {
    const SelfReport report = dtype ? decoder_report(kTinyLlama, self_on_cpu(dtype)) : own_report();
    CAPTURE(self_text(report));
    CHECK(report.passed());
    CHECK(report.dtype == dtype.value_or(DType::f16));
    CHECK_FALSE(report.random_text);
    CHECK(report.tokens == 512);
    CHECK(report.text_tokens > 512);
    CHECK(report.shortened == "the model has 512 positions");
    // A prefill and four decode steps with all values, and the text in four calls.
    CHECK(report.comparison.calls == 1 + 4 + 4);
    CHECK(report.comparison.values > 100);
    CHECK(report.precise->predictions == 511);
    CHECK(report.fused.generated.size() == 32);
    CHECK(report.fused.text_s > 0);
  }
}

TEST_CASE("its perplexity and tokens are those of the other commands") {
  const Model model = value(load_model(kTinyLlama));
  std::vector<int32_t> text = value(tokenize(kTinyLlama, self_check_text()));
  text.resize(512);
  const SelfReport& report = own_report();
  PerplexityOptions measuring;
  measuring.backend = cpu();
  const Perplexity expected = value(perplexity(model, text, measuring));
  CHECK(static_cast<int64_t>(report.fused.losses.size()) == expected.predicted);
  CHECK(report.unfused.mean_loss() == doctest::Approx(expected.mean()).epsilon(1e-3));
  GenerateOptions generating;
  generating.backend = cpu();
  generating.count = 32;
  generating.stop_at_eos = false;
  text.resize(static_cast<size_t>(report.prompt_tokens));
  CHECK(value(generate(model, {text}, generating)).tokens[0] == report.fused.generated);
}

TEST_CASE("a model without a tokenizer is given random tokens, and the report says so") {
  const SelfReport report = decoder_report(SINTER_TESTS_DIR "/golden/gpt2", self_on_cpu());
  CHECK(report.random_text);
  CHECK(report.passed());
  CHECK(contains(self_text(report), "the model has no tokenizer"));
}

TEST_CASE("a fused plan that computes something else is found, and the first value is named") {
  const SmallModel right = with_epsilon(1e-5), wrong = with_epsilon(1e-2);
  CHECK(check(right.plans, right.model).passed());
  const SelfReport report =
      check({right.plans.module, wrong.plans.fused, right.plans.unfused}, right.model);
  CHECK_FALSE(report.passed());
  CHECK(report.comparison.difference.starts_with("prefill %"));
  CHECK(contains(self_text(report), "fused = unfused  NO: prefill %"));
  CHECK(nlohmann::json::parse(self_json(report))["bitwise"] == false);
}

TEST_CASE("two plans that agree and are both wrong are found by float64") {
  const SmallModel right = with_epsilon(1e-5), wrong = with_epsilon(1e-2);
  const SelfReport report =
      check({right.plans.module, wrong.plans.fused, wrong.plans.unfused}, right.model);
  CHECK(report.comparison.difference.empty());
  CHECK(report.same_tokens());
  CHECK_FALSE(report.precise->holds());
  CHECK_FALSE(report.passed());
  CHECK(contains(self_text(report), "TOO FAR"));
}

TEST_CASE("other tokens break the promise of strict numerics alone") {
  SelfReport report;
  report.fused.losses = report.unfused.losses = {1};
  report.fused.generated = {4, 7};
  report.unfused.generated = {4, 8};
  CHECK_FALSE(report.passed());
  CHECK(contains(self_text(report), "NO: token 1 is 7 fused and 8 unfused"));
  report.strict = false;
  CHECK(report.passed());
}

TEST_CASE("limits shorten the text and the evaluation in float64, or leave it out with a reason") {
  const SmallModel small = with_epsilon(1e-5);
  const double weights = weight_elements(small.plans.fused->program());
  const SelfReport text =
      check(small.plans, small.model, {.text_products = 100.5 * weights, .memory = {}});
  CHECK(text.tokens == 100);
  CHECK(text.text_tokens == 200);
  CHECK(contains(text.shortened, "multiplications on the CPU"));
  const SelfReport few =
      check(small.plans, small.model, {.precise_products = 40.5 * weights, .memory = {}});
  CHECK(few.precise->predictions == 39);
  CHECK(few.fused.losses.size() == 199);
  CHECK(few.passed());
  const SelfReport none =
      check(small.plans, small.model, {.precise_products = weights, .memory = {}});
  CHECK_FALSE(none.precise.has_value());
  CHECK(contains(self_text(none), "not compared: 2 tokens need"));
  CHECK(self_text(none).ends_with("neither is compared with float64\n"));
  const SelfReport memory = check(small.plans, small.model, {.memory = 1000});
  CHECK_FALSE(memory.precise.has_value());
  CHECK(contains(memory.not_precise, "of the host's memory, 1.00 KB are available"));
  CHECK(memory.passed());
  CHECK(nlohmann::json::parse(self_json(memory))["float64"].is_null());
}

TEST_CASE("fast numerics may have other bits, and are nothing without float64") {
  SelfOptions options = self_on_cpu();
  options.compile.fusion.numerics = Numerics::fast;
  const SelfReport report = decoder_report(kTinyLlama, options);
  CAPTURE(self_text(report));
  CHECK_FALSE(report.strict);
  CHECK_FALSE(report.comparison.difference.empty());
  CHECK(report.passed());
  const Model model = value(load_model(kTinyLlama));
  const Plans plans = value(make_plans(model, options.compile, *cpu()));
  const auto refused = check_self(plans, *model.spec, some_tokens(20, 1), options,
                                  {.precise_products = 1, .memory = {}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(contains(refused.error().message(), "2 tokens need"));
}

TEST_CASE("modules are refused") {
  const auto report = verify_self(SINTER_SAMPLES_DIR "/glu_mlp.sir", self_on_cpu());
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().code == ExitCode::usage);
  CHECK(contains(report.error().message(), "a module"));
}

}  // namespace
}  // namespace sinter::self_check_test
