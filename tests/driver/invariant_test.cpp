// `verify --invariant`: plans of the invariant recipe keep its promise, usual plans do not, and the
// check finds that. Texts of encoders lie where tiles of keys cut them alike.
#include "driver/verify/invariant.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "driver/compile/compile.h"
#include "driver/embed/encode.h"
#include "driver/self_case.h"
#include "golden/models.h"
#include "runtime/temporary_directory.h"

namespace sinter::invariant_test {
namespace {

const std::string kGoldenFolder = SINTER_TESTS_DIR "/golden/";

CompileOptions invariant() {
  CompileOptions options;
  REQUIRE(choose_invariant("a test", options).has_value());
  return options;
}

InvariantReport report_of(const Model& model, const CompileOptions& options) {
  const ReadyPlan ready = value(make_ready(model, options, *cpu()));
  return value(check_invariance(*ready.executable, *model.spec, self_on_cpu()));
}

const InvariantWay& way_of(const InvariantReport& report, std::string_view name) {
  const auto found =
      llvm::find_if(report.ways, [&](const InvariantWay& way) { return way.name == name; });
  REQUIRE(found != report.ways.end());
  return *found;
}

TEST_CASE("models of every kind of attention and norm keep the promise") {
  for (const auto& [name, dtype] : {
           std::pair("llama", DType::bf16),
           {"gemma2", DType::bf16},
           {"gpt2_switches", DType::f16},
           {"qwen3", DType::f32},
           {"qwen3_moe", DType::bf16},
           {"bert_post_ln", DType::bf16},
           {"modernbert", DType::f16},
       }) {
    CAPTURE(name);
    const InvariantReport report = report_of(load_golden(name, dtype), invariant());
    CHECK_MESSAGE(report.passed(), invariant_text(report));
    CHECK(report.ways.size() == (is_golden_encoder(name) ? 3 : 5));
    for (const InvariantWay& way : report.ways) CHECK(way.tokens >= report.texts[0]);
    CHECK(report.left_out.empty());
  }
}

TEST_CASE("a text of several segments of keys keeps the promise") {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() + "/long.json")
      << R"({"sinter_spec": 1, "name": "long", "dtype": "bf16", "vocabulary": 17, "hidden": 16,
             "layers": 1, "heads": 1, "kv_heads": 1, "ffn": 24, "max_positions": 1024,
             "norm": "rms_norm", "norm_eps": 1e-5, "rope": {"theta": 10000},
             "activation": "silu", "gated": true})";
  const Model model = value(load_model(folder.path() + "/long.json",
                                       {.dtype = {}, .random_weights = 5, .streaming = {}}));
  const ReadyPlan ready = value(make_ready(model, invariant(), *cpu()));
  SelfLimits limits;
  limits.invariant_tokens = 560;  // segments have 512
  const InvariantReport report =
      value(check_invariance(*ready.executable, *model.spec, self_on_cpu(), limits));
  CHECK_MESSAGE(report.passed(), invariant_text(report));
  CHECK(report.texts == std::vector<int64_t>{560});
}

TEST_CASE("a usual plan is found: few tokens have another order than many") {
  const InvariantReport report = report_of(load_golden("llama", DType::bf16), {});
  const std::string text = invariant_text(report);
  CAPTURE(text);
  CHECK_FALSE(report.passed());
  for (const char* name : {"token by token", "among 2 sequences", "among 8 sequences"})
    CHECK_FALSE(way_of(report, name).difference.empty());
  CHECK(contains(way_of(report, "token by token").difference, "in a decode of 1 of its tokens: "));
  CHECK(contains(text, "NO: token "));
  CHECK(text.ends_with("see above\n"));
  const auto json = nlohmann::json::parse(invariant_json(report));
  CHECK(json["passed"] == false);
  CHECK(json["ways"][0]["equal"] == false);
  CHECK(json["ways"][0]["calls"] == way_of(report, "token by token").calls);
}

/// An encoder of 512 positions with random weights, whose attention has tiles of 128 keys.
Model long_encoder(DType dtype) {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/long.json";
  std::ofstream(path)
      << R"({"sinter_spec": 1, "name": "long", "encoder": true, "dtype": "f32", "vocabulary": 97,
             "hidden": 48, "layers": 2, "heads": 3, "ffn": 80, "max_positions": 512,
             "norm": "layer_norm", "norm_eps": 1e-5, "norm_place": "after", "final_norm": false,
             "rope": null, "activation": "gelu", "gated": false})";
  return value(load_model(path, {.dtype = dtype, .random_weights = 5, .streaming = {}}));
}

TEST_CASE("a usual plan of an encoder is found: texts begin anywhere in a tile of keys") {
  const InvariantReport report = report_of(long_encoder(DType::bf16), {});
  CAPTURE(invariant_text(report));
  CHECK(report.texts == std::vector<int64_t>{5, 70, 130});
  CHECK_FALSE(way_of(report, "packed in the middle").difference.empty());
  CHECK_FALSE(way_of(report, "packed last").difference.empty());
}

TEST_CASE("results that are not finite are no proof") {
  const Model model = load_with_nan(7);
  const ReadyPlan ready = value(make_ready(model, invariant(), *cpu()));
  const auto report = check_invariance(*ready.executable, *model.spec, self_on_cpu());
  REQUIRE_FALSE(report.has_value());
  CHECK(contains(report.error().message(), "not finite"));
}

TEST_CASE("many sequences are left out where they are too much work, and the report says so") {
  const Model model = load_golden("llama", DType::bf16);
  const ReadyPlan ready = value(make_ready(model, invariant(), *cpu()));
  const double tokens = weight_elements(ready.executable->program()) * 100;
  const InvariantReport report = value(check_invariance(
      *ready.executable, *model.spec, self_on_cpu(), {.invariant_products = tokens, .memory = {}}));
  CHECK(report.passed());
  CHECK(report.texts == std::vector<int64_t>{24});
  CHECK(report.ways.size() == 4);
  CHECK(contains(invariant_text(report), "not computed: 8 sequences and more"));
}

TEST_CASE("what cannot be invariant is refused by name") {
  const auto refused = [](const std::string& path, std::optional<DType> dtype,
                          std::string_view part, bool random = false) {
    SelfOptions options = self_on_cpu(dtype);
    options.compile = invariant();
    if (random) options.open.random_weights = 1;
    const auto report = verify_invariance(path, options);
    REQUIRE_FALSE(report.has_value());
    CHECK_MESSAGE(contains(report.error().message(), part), report.error().message());
  };
  refused(kGoldenFolder + "mpnet", DType::f32, "attention op by op");
  const TemporaryDirectory folder;
  std::ofstream(folder.path() + "/wide.json")
      << R"({"sinter_spec": 1, "name": "wide", "dtype": "bf16", "vocabulary": 97, "hidden": 320,
             "layers": 1, "heads": 1, "kv_heads": 1, "head_dim": 320, "ffn": 64,
             "max_positions": 64, "norm": "rms_norm", "norm_eps": 1e-5, "rope": null,
             "activation": "gelu", "gated": false})";
  refused(folder.path() + "/wide.json", {}, "attention op by op", true);
  CompileOptions composed;
  composed.recipe.attention = Recipe::Attention::composed;
  CHECK(choose_invariant("a test", composed).error().code == ExitCode::usage);
}

TEST_CASE("a text has the same hidden states in each of six orders of three texts") {
  for (const DType dtype : {DType::bf16, DType::f32}) {
    const Model model = long_encoder(dtype);
    const ReadyPlan ready = value(make_ready(model, invariant(), *cpu()));
    std::vector<std::vector<int32_t>> texts;
    std::vector<std::vector<std::byte>> alone;
    for (const int64_t length : {5, 70, 130}) {
      texts.push_back(some_tokens(length, static_cast<uint64_t>(length)));
      alone.push_back(
          value(encode(*model.spec, *ready.executable, {texts.back()})).outputs[0].bytes);
    }
    std::vector<size_t> order = {0, 1, 2};
    do {
      std::vector<std::vector<int32_t>> packed;
      std::vector<std::byte> expected;
      for (const size_t text : order) {
        packed.push_back(texts[text]);
        expected.insert(expected.end(), alone[text].begin(), alone[text].end());
      }
      const RunResult result =
          value(encode(*model.spec, *ready.executable, packed, {.poison_freed = true, .keep = {}}));
      CHECK(result.outputs[0].bytes == expected);
    } while (std::next_permutation(order.begin(), order.end()));
  }
}

TEST_CASE("texts of invariant plans begin at steps of keys, and long ones at tiles") {
  CHECK(text_begin(5, 100, false) == 5);
  CHECK(text_begin(0, 300, true) == 0);
  CHECK(text_begin(5, 48, true) == 16);
  CHECK(text_begin(5, 49, true) == 64);
  CHECK(text_begin(5, 65, true) == 128);
  CHECK(text_begin(64, 64, true) == 64);
  CHECK(packed_rows({5, 70, 130}, true) == 386);
  CHECK(packed_rows({130, 5, 70}, true) == 326);
  CHECK(packed_rows({5, 70, 130}, false) == 205);
  // Rows between texts see themselves, and nothing else.
  const Model model = load_golden("distilbert", DType::bf16);
  const DecoderCall call = pack_texts(*model.spec, model.module.symbols, {{7, 8, 9}, {4}}, true);
  CHECK(call.symbol_values == std::vector<int64_t>{17});
  const auto* first = call.inputs[2].data<int32_t>();
  const auto* last = call.inputs[3].data<int32_t>();
  for (int32_t row = 0; row < 17; ++row) {
    CHECK(first[row] == (row < 3 ? 0 : row));
    CHECK(last[row] == (row < 3 ? 2 : row));
  }
}

}  // namespace
}  // namespace sinter::invariant_test
