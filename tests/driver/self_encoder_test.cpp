// `verify --self` of encoders: what it measures, and that it finds plans which are wrong.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <regex>
#include <sstream>

#include "driver/self_case.h"
#include "driver/verify/self_report.h"
#include "runtime/temporary_directory.h"

namespace sinter::self_encoder_test {
namespace {

const std::string kGoldenFolder = SINTER_TESTS_DIR "/golden/";

EncoderReport encoder_report(const std::string& path, const SelfOptions& options) {
  return std::get<EncoderReport>(value(verify_self(path, options)));
}

/// A small encoder with a given epsilon in its norms, and random weights that are always the same.
struct SmallEncoder {
  Model model;
  Plans plans;
};
SmallEncoder encoder_with_epsilon(double epsilon) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/small.json";
  std::ofstream(path) << fmt::format(
      R"({{"sinter_spec": 1, "name": "small", "encoder": true, "dtype": "f32", "vocabulary": 97,
      "hidden": 48, "layers": 2, "heads": 4, "ffn": 80, "max_positions": 64, "norm": "layer_norm",
      "norm_eps": {}, "norm_place": "after", "final_norm": false, "rope": null,
      "activation": "gelu", "gated": false}})",
      epsilon);
  Model model = value(load_model(path, {.dtype = {}, .random_weights = 5, .streaming = {}}));
  Plans plans = value(make_plans(model, {}, *cpu()));
  return {std::move(model), std::move(plans)};
}

EncoderReport check_encoder(const Plans& plans, const Model& model, const SelfLimits& limits = {},
                            const SelfOptions& options = self_on_cpu()) {
  return value(check_self_encoder(plans, *model.spec, some_tokens(100, 3), options, limits));
}

TEST_CASE("encoders read texts of many lengths, alone and together, in every float type") {
  for (const char* name :
       {"bert_post_ln", "distilbert", "modernbert", "mpnet", "roberta", "xlm_roberta"})
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      const EncoderReport report = encoder_report(kGoldenFolder + name, self_on_cpu(dtype));
      const std::string text = self_text(report);
      CAPTURE(name);
      CAPTURE(text);
      CHECK(report.passed());
      CHECK(report.dtype == dtype);
      CHECK(report.comparison.calls == static_cast<int64_t>(report.calls.size()));
      CHECK(report.comparison.values > report.comparison.calls);
      CHECK(report.left_out == "");
      CHECK(report.precise->calls == report.comparison.calls);
      CHECK(report.precise->tokens == report.tokens);
      CHECK(report.precise->fused_rms > 0);
      CHECK(report.precise->fused_rms == report.precise->unfused_rms);
      CHECK(text.ends_with("verified: every promise holds\n"));
    }
}

TEST_CASE("calls have 1 token to all positions, and 1 to 8 texts") {
  const auto calls = self_call_lengths(128);
  CHECK(calls.front() == std::vector<int64_t>{1});
  CHECK(calls.back() == std::vector<int64_t>(8, 16));
  CHECK(std::count(calls.begin(), calls.end(), std::vector<int64_t>{128}) == 1);
  for (const int64_t positions : {1, 2, 3, 20, 127, 129, 512, 8192})
    for (const auto& lengths : self_call_lengths(positions))
      CHECK(std::accumulate(lengths.begin(), lengths.end(), int64_t{0}) <= positions);
}

TEST_CASE("the bundled text is read by an encoder with a tokenizer") {
  // The tokenizer has more ids than the golden model.
  const TemporaryDirectory folder;
  std::stringstream config;
  config << std::ifstream(kGoldenFolder + "bert_post_ln/config.json").rdbuf();
  std::ofstream(folder.path() + "/config.json") << std::regex_replace(
      config.str(), std::regex("\"vocab_size\": 211"), "\"vocab_size\": 9999");
  std::filesystem::copy(kGoldenFolder + "tokenizers/wordpiece_bert/tokenizer.json", folder.path());
  SelfOptions options = self_on_cpu();
  options.open.random_weights = 1;
  const EncoderReport report = encoder_report(folder.path(), options);
  CHECK(report.passed());
  CHECK_FALSE(report.random_text);
  CHECK(contains(self_text(report), "the bundled text, by the model's tokenizer"));
  CHECK(contains(self_text(encoder_report(kGoldenFolder + "bert_post_ln", self_on_cpu())),
                 "the model has no tokenizer"));
}

TEST_CASE("a fused plan of an encoder that computes something else is found") {
  const SmallEncoder right = encoder_with_epsilon(1e-5), wrong = encoder_with_epsilon(1e-2);
  CHECK(check_encoder(right.plans, right.model).passed());
  const EncoderReport report =
      check_encoder({right.plans.module, wrong.plans.fused, right.plans.unfused}, right.model);
  CHECK_FALSE(report.passed());
  CHECK(report.comparison.difference.starts_with("encode %"));
  CHECK(contains(self_text(report), "fused = unfused  NO: encode %"));
  CHECK(nlohmann::json::parse(self_json(report))["bitwise"] == false);
}

TEST_CASE("two plans of an encoder that agree and are both wrong are found by float64") {
  const SmallEncoder right = encoder_with_epsilon(1e-5), wrong = encoder_with_epsilon(1e-2);
  const EncoderReport report =
      check_encoder({right.plans.module, wrong.plans.fused, wrong.plans.unfused}, right.model);
  CHECK(report.comparison.difference.empty());
  CHECK_FALSE(report.precise->holds);
  CHECK_FALSE(report.passed());
  CHECK(contains(self_text(report), "TOO FAR"));
}

TEST_CASE("calls that take too long or too much memory are left out, and the report says so") {
  const SmallEncoder small = encoder_with_epsilon(1e-5);
  const double weights = weight_elements(small.plans.fused->program());
  const EncoderReport few =
      check_encoder(small.plans, small.model, {.text_products = 12 * weights, .memory = {}});
  CHECK(few.calls == std::vector<std::vector<int64_t>>{{1}, {2}, {3}, {1, 2}});
  CHECK(contains(few.left_out, "calls of 7 tokens and more: more would be over"));
  SelfOptions options = self_on_cpu();
  options.prefill.activation_bytes = few.unfused_arena_bytes;
  const EncoderReport tight = check_encoder(small.plans, small.model, {}, options);
  CHECK(tight.calls == few.calls);
  CHECK(contains(tight.left_out, "the arena would take"));
  const EncoderReport none =
      check_encoder(small.plans, small.model, {.precise_products = weights / 2, .memory = {}});
  CHECK_FALSE(none.precise.has_value());
  CHECK(none.passed());
  CHECK(contains(self_text(none), "not compared: 1 token needs"));
  CHECK(self_text(none).ends_with("neither is compared with float64\n"));
  CHECK(nlohmann::json::parse(self_json(none))["float64"].is_null());
}

TEST_CASE("fast numerics of an encoder are compared with float64 alone") {
  SelfOptions options = self_on_cpu(DType::bf16);
  options.compile.fusion.numerics = Numerics::fast;
  const EncoderReport report = encoder_report(kGoldenFolder + "bert_post_ln", options);
  const std::string text = self_text(report);
  CAPTURE(text);
  CHECK_FALSE(report.strict);
  CHECK(report.passed());
  const Model model = load_golden("bert_post_ln", DType::bf16);
  const Plans plans = value(make_plans(model, options.compile, *cpu()));
  const auto refused = check_self_encoder(plans, *model.spec, some_tokens(20, 1), options,
                                          {.precise_products = 1, .memory = {}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(contains(refused.error().message(), "1 token needs"));
}

TEST_CASE("options that say how to generate are refused for an encoder") {
  SelfOptions steps = self_on_cpu(), chunk = self_on_cpu();
  steps.steps = 3;
  chunk.prefill.chunk = 8;
  for (const auto& [options, name] : {std::pair(&steps, "--steps"), {&chunk, "--prefill-chunk"}}) {
    const auto report = verify_self(kGoldenFolder + "bert_post_ln", *options);
    REQUIRE_FALSE(report.has_value());
    CHECK(report.error().code == ExitCode::usage);
    CHECK(contains(report.error().message(), name));
  }
}

}  // namespace
}  // namespace sinter::self_encoder_test
