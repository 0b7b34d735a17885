// perplexity() against sums over logits computed here.
#include "driver/generate/perplexity.h"

#include <cmath>

#include "driver/small_models.h"
#include "runtime/compare.h"

namespace sinter::perplexity_test {
namespace {

using Tokens = std::vector<int32_t>;

// Sums of float32 in other orders, in logits of the order of 1.
constexpr double kAllowed = 1e-5;  // of a mean

Perplexity measured(const Model& model, const Tokens& tokens, int64_t window = 0,
                    bool recompute = false) {
  PerplexityOptions options;
  options.backend = cpu();
  options.window = window;
  options.recompute = recompute;
  return value(perplexity(model, tokens, options));
}

/// -log p(tokens[i + 1] | tokens[0 .. i]) for every i, from one prefill.
std::vector<double> losses(const std::shared_ptr<const Executable>& model,
                           llvm::ArrayRef<int32_t> tokens) {
  Decoder decoder = value(Decoder::create(model, 1, static_cast<int64_t>(tokens.size())));
  const HostTensor logits = value(decoder.prefill({tokens.vec()})).outputs[0];
  const std::vector<double> values = to_doubles(logits);
  const auto width = static_cast<size_t>(logits.dims[1]);
  std::vector<double> result;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    double sum = 0;
    for (size_t k = 0; k < width; ++k) sum += std::exp(values[i * width + k]);
    result.push_back(std::log(sum) - values[i * width + static_cast<size_t>(tokens[i + 1])]);
  }
  return result;
}

double sum(const std::vector<double>& values) {
  double result = 0;
  for (double v : values) result += v;
  return result;
}

void check_sum(const Perplexity& measured, double expected, int64_t predicted) {
  CHECK(measured.predicted == predicted);
  CHECK(std::abs(measured.nll_sum - expected) <= kAllowed * static_cast<double>(predicted));
  CHECK(measured.value() == std::exp(measured.nll_sum / static_cast<double>(predicted)));
}

TEST_CASE("a text that fits is predicted as a whole") {
  const Tokens tokens = some_tokens(40, 1);
  for (const std::string& name : kGoldenModels) {
    CAPTURE(name);
    const Model model = load_golden(name, DType::f32);
    check_sum(measured(model, tokens), sum(losses(ready(model), tokens)), 39);
  }
  // Longer than one call takes.
  const Model model = load_one_layer(DType::f32);
  const Tokens longer = some_tokens(300, 2);
  check_sum(measured(model, longer), sum(losses(ready(model), longer)), 299);
}

TEST_CASE("a longer text is cut, and every piece predicted from its own beginning") {
  const Model model = load_golden("llama", DType::f32);
  const auto plain = ready(model);
  const Tokens tokens = some_tokens(40, 1);
  double expected = 0;
  for (const auto& [begin, length] : {std::pair(0, 16), {16, 16}, {32, 8}})
    expected += sum(losses(plain, llvm::ArrayRef(tokens).slice(begin, length)));
  check_sum(measured(model, tokens, 16), expected, 15 + 15 + 7);
}

TEST_CASE("recomputed predictions see the last tokens of the window") {
  const Model model = load_golden("llama", DType::f32);
  const auto plain = ready(model);
  const Tokens tokens = some_tokens(20, 1);
  double expected = 0;
  for (size_t at = 1; at < tokens.size(); ++at) {
    const size_t seen = std::min<size_t>(at, 6);
    expected += losses(plain, llvm::ArrayRef(tokens).slice(at - seen, seen + 1)).back();
  }
  check_sum(measured(model, tokens, 6, true), expected, 19);
}

TEST_CASE("a streaming cache that is never full changes nothing") {
  const Tokens tokens = some_tokens(30, 1);
  const double expected = sum(losses(ready(load_golden("llama", DType::f32)), tokens));
  check_sum(measured(load_golden("llama", DType::f32, StreamingCache{4, 27}), tokens), expected,
            29);
}

TEST_CASE("logits that are not finite predict nothing") {
  PerplexityOptions options;
  options.backend = cpu();
  const auto measured = perplexity(OpenedModel(load_with_nan(9)), {1, 2, 9, 3, 4}, options);
  REQUIRE_FALSE(measured);
  CHECK(measured.error().code == ExitCode::check_failed);
  CHECK(measured.error().what ==
        "the logits of prediction 3 are not finite: element [9, 3] of tensor "
        "model.embed_tokens.weight is nan");
}

TEST_CASE("what cannot be measured is an error") {
  const Model model = load_golden("llama", DType::f32);
  PerplexityOptions options;
  options.backend = cpu();
  const auto error = [&](const Tokens& tokens) {
    const auto result = perplexity(model, tokens, options);
    REQUIRE_FALSE(result);
    return result.error().message();
  };
  CHECK(error({1}).find("fewer than two tokens") != std::string::npos);
  CHECK(error({1, 211}).find("token 211 is outside the vocabulary of 211") != std::string::npos);
  options.window = 129;
  CHECK(error({1, 2}).find("a window of 129 tokens, the model has 128 positions") !=
        std::string::npos);
}

}  // namespace
}  // namespace sinter::perplexity_test
