// Every golden model through `verify`, and batches of models with windows.
#include "driver/generate/generate.h"
#include "driver/small_models.h"
#include "driver/verify/report.h"
#include "driver/verify/verify.h"
#include "frontends/files/tensor_file.h"
#include "golden/models.h"
#include "runtime/temporary_directory.h"

namespace sinter::families_test {
namespace {

TEST_CASE("every family: fused = unfused in three types, and the reference") {
  VerifyOptions options;
  options.backend = cpu();
  for (const std::string& name : golden_models()) {
    CAPTURE(name);
    const std::string folder = SINTER_TESTS_DIR "/golden/" + name;
    options.reference = folder + "/reference.safetensors";
    const VerifyReport report = value(verify_model(folder, options));
    REQUIRE(report.dtypes.size() == 3);
    CHECK_MESSAGE(report.passed(), verify_text(report));
    CHECK(report.dtypes[0].reference.size() >= 4);
  }
}

TEST_CASE("reference texts that exceed the context together are read in several calls") {
  const TemporaryDirectory folder;
  VerifyOptions options;
  options.backend = cpu();
  options.dtypes = {DType::f32};
  options.steps = 2;
  // Two texts of 23 tokens for 128 or 64 positions; of mpnet, of 150 tokens for 320.
  for (const auto& [name, times, calls] : {std::tuple("llama", 5, 2),
                                           {"gpt2_switches", 3, 3},
                                           {"bert_post_ln", 5, 2},
                                           {"mpnet", 2, 2}}) {
    CAPTURE(name);
    const std::string model = std::string(SINTER_TESTS_DIR "/golden/") + name;
    const bool encoder = value(load_model(model)).spec->encoder;
    for (float error : {0.0f, 1.0f}) {
      options.reference =
          repeated_reference(model + "/reference.safetensors", times, folder.path(), error);
      const VerifyReport report = value(verify_model(model, options));
      CHECK_MESSAGE(report.passed() == (error == 0), verify_text(report));
      CHECK(report.dtypes[0].calls == calls + (encoder ? 0 : options.steps));
      CHECK(report.dtypes[0].fused_error.has_value());
    }
  }
}

TEST_CASE("a text that exceeds the context alone is refused by its number and both sizes") {
  const TemporaryDirectory folder;
  VerifyOptions options;
  options.backend = cpu();
  options.dtypes = {DType::f32};
  options.reference = folder.path() + "/long.safetensors";
  const std::vector<int32_t> ids(2 * 65, 1);
  CHECK(write_tensor_file(options.reference,
                          {{"input_ids", FileDType::I32, {2, 65}, std::as_bytes(std::span(ids))}}));
  for (const char* name : {"gpt2_switches", "distilbert"}) {  // 64 positions
    const auto refused = verify_model(std::string(SINTER_TESTS_DIR "/golden/") + name, options);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message() ==
          options.reference +
              ": text 1 has 65 tokens, the model takes 1 to 64; give texts that fit "
              "the model's context");
  }
}

TEST_CASE("a model of few positions is verified with texts that fit them") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/short.json";
  VerifyOptions options;
  options.backend = cpu();
  options.open.random_weights = 3;
  for (int positions : {1, 12, 20}) {
    CAPTURE(positions);
    std::ofstream(path) << one_layer_spec(positions);
    for (const Numerics numerics : {Numerics::strict, Numerics::fast}) {
      options.compile.fusion.numerics = numerics;
      const VerifyReport report = value(verify_model(path, options));
      CHECK_MESSAGE(report.passed(), verify_text(report));
    }
  }
}

TEST_CASE("windows: texts of unequal length in one batch go on as each alone") {
  // Windows are 5 to 9 tokens: the texts begin shorter and longer than that, and outgrow it.
  const std::vector<std::vector<int32_t>> prompts = {some_tokens(3, 1), some_tokens(20, 2),
                                                     some_tokens(11, 3)};
  for (const char* name : {"mistral_window", "gemma2", "gemma3_text", "phi3", "qwen2_mixed_windows",
                           "qwen3_bias_windows"}) {
    CAPTURE(name);
    const Model model = load_golden(name, DType::f32);
    GenerateOptions options;
    options.backend = cpu();
    options.count = 12;
    options.stop_at_eos = false;
    const Generation together = value(generate(model, prompts, options));
    for (size_t s = 0; s < prompts.size(); ++s)
      CHECK(value(generate(model, {prompts[s]}, options)).tokens[0] == together.tokens[s]);
  }
}

TEST_CASE("a window: tokens that have left it change nothing, in prefill and decoding") {
  // Through three layers with windows of eight a token sees 21 tokens back.
  for (const char* name : {"mistral_window", "gemma2"}) {
    CAPTURE(name);
    Model model = load_golden(name, DType::f32);
    const std::vector<int32_t> text = some_tokens(30, 4);
    std::vector<int32_t> other = text;
    for (size_t i = 0; i < 6; ++i) other[i] ^= 1;
    const auto last = [&](const std::vector<int32_t>& tokens) {
      Decoder decoder = value(Decoder::create(ready(model), 1, 31));
      value(decoder.prefill({tokens}));
      return value(decoder.decode({7})).outputs[0].bytes;
    };
    const bool all_slide = model.spec->windowed.empty();
    CHECK((last(text) == last(other)) == all_slide);
  }
}

}  // namespace
}  // namespace sinter::families_test
