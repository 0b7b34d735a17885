// The cache of bounded size: the same as the plain one while the text is shorter, then the plain
// model's prefill of the tokens that are kept.
#include "driver/generate/generation_state.h"
#include "driver/small_models.h"
#include "runtime/compare.h"

namespace sinter::streaming_cache_test {
namespace {

using Tokens = std::vector<int32_t>;

Tokens generated(const std::shared_ptr<const Executable>& model, const Tokens& prompt,
                 int64_t steps, const std::optional<StreamingCache>& streaming) {
  const auto generator = value(Generator::create(model, {prompt}, steps, {}, streaming));
  Tokens result;
  for (int64_t step = 0; step < steps; ++step) result.push_back(value(generator->next())[0]);
  return result;
}

TEST_CASE("a text shorter than the cache is continued as without one") {
  const StreamingCache cache{.sink = 2, .window = 25};  // rows that are no multiple of 8
  for (const std::string& name : kGoldenModels) {
    if (name == "gpt2") continue;  // learned positions cannot move
    CAPTURE(name);
    const auto plain = ready(load_golden(name, DType::f32));
    const auto streaming = ready(load_golden(name, DType::f32, cache));
    const Tokens prompt = some_tokens(10, 3);
    CHECK(generated(streaming, prompt, 17, cache) == generated(plain, prompt, 17, {}));
  }
}

/// Logits after each of the tokens, as they go through the cache.
std::vector<HostTensor> streamed(const Executable& model, const Tokens& tokens, int64_t prompt,
                                 const StreamingCache& cache) {
  Started state = value(
      start_generation(model, {Tokens(tokens.begin(), tokens.begin() + prompt)}, 1, {}, cache));
  std::vector<HostTensor> logits = {state.logits};
  for (size_t at = static_cast<size_t>(prompt); at < tokens.size(); ++at) {
    const Status done = force_token(model, state, tokens[at]);
    REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message()));
    logits.push_back(state.logits);
  }
  return logits;
}

/// The first `sink` of the tokens and the last `window` of the others.
Tokens kept(llvm::ArrayRef<int32_t> tokens, const StreamingCache& cache) {
  if (static_cast<int64_t>(tokens.size()) <= cache.rows()) return tokens.vec();
  Tokens result = tokens.take_front(static_cast<size_t>(cache.sink)).vec();
  const auto window = tokens.take_back(static_cast<size_t>(cache.window));
  result.insert(result.end(), window.begin(), window.end());
  return result;
}

// One layer, because only its keys and values depend on nothing but their own tokens: a deeper
// layer's were computed when their tokens saw others, now gone, at other positions, and no
// computation over the kept tokens alone repeats them.
//
// The two differ in the order in which keys are summed, since the window's rows go round, and in
// narrow types by a rounding of keys: before they are turned, not after. Each of the five products
// of the layer that a difference goes through (scores, values, attention's, two of the MLP) and the
// logits may differ by what one may be off; sums are of 80 terms at most.
TEST_CASE("a longer text gives the logits of the tokens that are kept") {
  constexpr int kProducts = 6;
  constexpr int64_t kLongestSum = 80;
  const Tokens tokens = some_tokens(40, 9);
  for (const StreamingCache cache : {StreamingCache{2, 9}, {0, 8}, {4, 1}, {3, 13}})
    for (DType dtype : {DType::f32, DType::f16, DType::bf16})
      for (int64_t prompt : {int64_t{1}, cache.rows() + 3}) {
        CAPTURE(cache.sink);
        CAPTURE(cache.window);
        CAPTURE(to_string(dtype));
        CAPTURE(prompt);
        const auto plain = ready(load_one_layer(dtype));
        const auto streaming = ready(load_one_layer(dtype, cache));
        const std::vector<HostTensor> logits = streamed(*streaming, tokens, prompt, cache);
        Tolerance allowed = tolerance(dtype, kLongestSum);
        allowed.relative *= kProducts;
        allowed.absolute *= kProducts;
        for (size_t i = 0; i < logits.size(); ++i) {
          const size_t length = static_cast<size_t>(prompt) + i;
          CAPTURE(length);
          const Tokens seen = kept(llvm::ArrayRef(tokens).take_front(length), cache);
          Decoder decoder = value(Decoder::create(plain, 1, static_cast<int64_t>(seen.size())));
          const HostTensor expected =
              value(decoder.prefill({seen}, {}, Wanted::last_of_each)).outputs[0];
          const auto excess = value(exceeds(logits[i], to_doubles(expected), allowed));
          CHECK_MESSAGE(!excess,
                        (excess ? fmt::format("{} logits, logit {} is {}, expected {} ± {}",
                                              excess->count, excess->index, excess->value,
                                              excess->reference, excess->allowed)
                                : std::string()));
        }
      }
}

}  // namespace
}  // namespace sinter::streaming_cache_test
