// Every golden model through `verify`, and batches of models with windows.
#include "driver/generate/generate.h"
#include "driver/small_models.h"
#include "driver/verify/report.h"
#include "driver/verify/verify.h"
#include "golden/models.h"

namespace sinter {
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

TEST_CASE("windows: texts of unequal length in one batch go on as each alone") {
  // Windows are 5 to 9 tokens: the texts begin shorter and longer than that, and outgrow it.
  const std::vector<std::vector<int32_t>> prompts = {some_tokens(3, 1), some_tokens(20, 2),
                                                     some_tokens(11, 3)};
  for (const char* name : {"mistral_window", "gemma2", "gemma3_text", "phi3", "qwen2_mixed_windows",
                           "qwen3_bias_windows"}) {
    CAPTURE(name);
    const LoadedModel model = load_golden(name, DType::f32);
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
    LoadedModel model = load_golden(name, DType::f32);
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
}  // namespace sinter
