// Generation step by step against the decoder that it is made of.
#include "driver/generate/generator.h"

#include "driver/generate/generate.h"
#include "driver/small_models.h"

namespace sinter::generator_test {
namespace {

using Tokens = std::vector<int32_t>;
constexpr int64_t kSteps = 12;

/// The tokens that a generator gives for each prompt.
std::vector<Tokens> generated(const std::shared_ptr<const Executable>& model,
                              const std::vector<Tokens>& prompts, int64_t steps,
                              const Sampling& sampling = {}) {
  const auto generator = value(Generator::create(model, prompts, steps, sampling));
  std::vector<Tokens> result(prompts.size());
  for (int64_t step = 0; step < steps; ++step) {
    const Tokens next = value(generator->next());
    REQUIRE(next.size() == prompts.size());
    for (size_t s = 0; s < next.size(); ++s) result[s].push_back(next[s]);
  }
  return result;
}

/// The likeliest token again and again.
Tokens decoded(const std::shared_ptr<const Executable>& model, const Tokens& prompt) {
  Decoder decoder = value(Decoder::create(model, 1, static_cast<int64_t>(prompt.size()) + kSteps));
  Tokens result = {
      greedy_token(value(decoder.prefill({prompt}, {}, Wanted::last_of_each)).outputs[0], 0)};
  while (static_cast<int64_t>(result.size()) < kSteps)
    result.push_back(greedy_token(value(decoder.decode({result.back()})).outputs[0], 0));
  return result;
}

TEST_CASE("a greedy generator chooses what the decoder's logits say") {
  for (const std::string& name : kGoldenModels)
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(name);
      CAPTURE(to_string(dtype));
      const auto model = ready(load_golden(name, dtype));
      for (int64_t length : {1, 9}) {
        const Tokens prompt = some_tokens(length, 3);
        CHECK(generated(model, {prompt}, kSteps)[0] == decoded(model, prompt));
      }
    }
}

TEST_CASE("prompts of unequal length give what each gives alone") {
  const std::vector<Tokens> prompts = {some_tokens(5, 1), some_tokens(1, 2), some_tokens(17, 3),
                                       some_tokens(8, 4)};
  for (const std::string& name : kGoldenModels) {
    CAPTURE(name);
    const auto model = ready(load_golden(name, DType::f32));
    const auto together = generated(model, prompts, kSteps);
    for (size_t s = 0; s < prompts.size(); ++s) {
      CAPTURE(s);
      CHECK(together[s] == generated(model, {prompts[s]}, kSteps)[0]);
    }
  }
}

TEST_CASE("sampled tokens follow the seed") {
  const auto model = ready(load_golden("llama", DType::f32));
  const Tokens prompt = some_tokens(6, 1);
  Sampling sampling{.temperature = 2, .top_k = 0, .top_p = 1, .seed = 1};
  const auto first = generated(model, {prompt}, kSteps, sampling);
  CHECK(generated(model, {prompt}, kSteps, sampling) == first);
  sampling.seed = 2;
  CHECK(generated(model, {prompt}, kSteps, sampling) != first);
  // One token left is the likeliest, at any temperature.
  sampling.top_k = 1;
  CHECK(generated(model, {prompt}, kSteps, sampling) == generated(model, {prompt}, kSteps));
}

/// The error of generating from prompts, and the tokens that came before it.
std::pair<Error, Tokens> failed(const Model& model, const std::vector<Tokens>& prompts,
                                float temperature = 0) {
  GenerateOptions options;
  options.backend = cpu();
  options.count = kSteps;
  options.stop_at_eos = false;
  options.sampling.temperature = temperature;
  Tokens tokens;
  options.on_token = [&](size_t sequence, int32_t token) {
    if (sequence == 0) tokens.push_back(token);
    return true;
  };
  const auto generation = generate(OpenedModel(model), prompts, options);
  REQUIRE_FALSE(generation);
  return {generation.error(), tokens};
}

TEST_CASE("logits that are not finite end a generation and name the weight") {
  const Tokens prompt = some_tokens(6, 1);
  const Tokens whole = generated(ready(load_golden("llama", DType::f32)), {prompt}, kSteps)[0];
  const int32_t late = whole[4];
  REQUIRE(llvm::find(whole, late) - whole.begin() == 4);
  REQUIRE_FALSE(llvm::is_contained(prompt, late));
  const auto [error, tokens] = failed(load_with_nan(late), {prompt});
  CHECK(error.code == ExitCode::check_failed);
  CHECK(error.what ==
        fmt::format("the logits after 11 tokens are not finite: element [{}, 3] of tensor "
                    "model.embed_tokens.weight is nan",
                    late));
  CHECK(tokens == Tokens(whole.begin(), whole.begin() + 5));
  CHECK(failed(load_with_nan(prompt[0]), {prompt}, 1).second.empty());
  CHECK(failed(load_with_nan(prompt[0]), {{late}, prompt})
            .first.what.starts_with("prompt 2: the logits after 6 tokens are not finite: "));
}

TEST_CASE("logits that are not finite by finite weights say what that may mean") {
  Model model = load_golden("llama", DType::f32);
  const auto with = [&](float value) {
    Model changed = model;
    changed.tensors =
        std::make_shared<ReplacedElement>(model.tensors, "model.norm.weight", 5, value);
    return failed(changed, {some_tokens(3, 1)}).first;
  };
  CHECK(with(INFINITY).what.ends_with("element [5] of tensor model.norm.weight is inf"));
  const Error finite = with(3e38f);
  CHECK(finite.code == ExitCode::check_failed);
  CHECK(finite.what.ends_with(" tokens are not finite"));
  CHECK(finite.hint.starts_with("all weights are finite: "));
  model = load_golden("llama", DType::f16);
  const Error narrow = with(1e5f);
  CHECK(
      narrow.what.ends_with("element [5] of tensor model.norm.weight is 100000, infinite as f16"));
  CHECK(narrow.hint.find("--dtype bf16 or fp32") != std::string::npos);
}

TEST_CASE("an option of draws without a temperature draws at temperature 1") {
  // temperature, top_p, top_k, seed
  CHECK(value(to_sampling({})).temperature == 0);
  for (const SamplingOptions& options :
       {SamplingOptions{{}, 0.9, {}, {}}, {{}, {}, 5, {}}, {{}, {}, {}, 0}, {{}, 1.0, {}, {}}}) {
    CHECK(value(to_sampling(options)).temperature == 1);
    SamplingOptions greedy = options;
    greedy.temperature = 0;
    CHECK(value(to_sampling(greedy)).temperature == 0);
  }
  const Sampling all = value(to_sampling({0.5, 0.25, 7, 3}));
  CHECK((all.temperature == 0.5f && all.top_p == 0.25f && all.top_k == 7 && all.seed == 3));
  CHECK_FALSE(to_sampling({{}, 0.0, {}, {}}));
  CHECK_FALSE(to_sampling({-1, {}, {}, {}}));
}

TEST_CASE("prompts that cannot be generated from are errors") {
  const auto model = ready(load_golden("llama", DType::f32));
  const auto error = [&](const std::vector<Tokens>& prompts, int64_t steps) {
    const auto generator = Generator::create(model, prompts, steps, {});
    REQUIRE_FALSE(generator);
    return generator.error().message();
  };
  CHECK(error({}, 1).find("0 sequences, 1 to 8") != std::string::npos);
  CHECK(error(std::vector<Tokens>(9, {1}), 1).find("9 sequences") != std::string::npos);
  CHECK(error({{1}, {}}, 1).find("no tokens") != std::string::npos);
  CHECK(error({{1, 211}}, 1).find("211") != std::string::npos);
  // 128 positions.
  CHECK(error({some_tokens(129, 1)}, 1) != "");
  CHECK(generated(model, {some_tokens(120, 1)}, 9)[0].size() == 9);
}

}  // namespace
}  // namespace sinter::generator_test
