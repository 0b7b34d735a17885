// The same calls give the same bits every time, whatever ran before: of all logits, and of tokens
// that a recorded graph samples.
#include <doctest/doctest.h>

#include <cstdlib>

#include "driver/generate/cuda_generator.h"
#include "driver/small_models.h"

namespace sinter {
namespace {

constexpr int kRuns = 100;
constexpr int64_t kSteps = 4;
const std::vector<std::vector<int32_t>> kPrompts = {{1, 17, 4, 150, 33, 9, 2}, {5, 6, 7}};

// The suite may run on another machine than it was built on.
std::string tests_folder() {
  const char* folder = std::getenv("SINTER_TESTS_DIR");
  return folder != nullptr ? folder : SINTER_TESTS_DIR;
}

/// Prefill and decoding of given tokens in a session of its own; all logits.
std::vector<HostTensor> run_once(const std::shared_ptr<const Executable>& model,
                                 const CallOptions& options) {
  Decoder decoder = value(Decoder::create(model, static_cast<int64_t>(kPrompts.size()), 16));
  std::vector<HostTensor> logits = {value(decoder.prefill(kPrompts, options)).outputs[0]};
  for (int32_t step = 0; step < kSteps; ++step)
    logits.push_back(value(decoder.decode({step, 100 + step}, options)).outputs[0]);
  return logits;
}

const Sampling kSampling{.temperature = 1, .top_k = 40, .top_p = 0.9f, .seed = 3};

std::vector<int32_t> take(Generator& generator, int64_t steps) {
  std::vector<int32_t> tokens;
  for (int64_t step = 0; step < steps; ++step)
    for (int32_t token : value(generator.next())) tokens.push_back(token);
  return tokens;
}

std::vector<int32_t> sample_once(const std::shared_ptr<const Executable>& model) {
  constexpr int64_t kSampled = 14;  // three graphs and a rest
  return take(*value(Generator::create(model, kPrompts, kSampled, kSampling)), kSampled);
}

TEST_CASE("a hundred runs give the same bits") {
  const auto backend = value(Backend::open({.device = "cuda", .record = {}, .progress = {}}));
  for (const std::string& name : kGoldenModels)
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(name);
      CAPTURE(to_string(dtype));
      LoadOptions load;
      load.dtype = dtype;
      const Model model = value(load_model(tests_folder() + "/golden/" + name, load));
      const ReadyPlan ready = value(make_ready(model, {}, *backend));
      const std::vector<HostTensor> first = run_once(ready.executable, {});
      const std::vector<int32_t> sampled = sample_once(ready.executable);
      for (int run = 1; run < kRuns; ++run) {
        CAPTURE(run);
        // Values that earlier runs left in memory must not matter.
        CallOptions options;
        options.poison_freed = run % 2 == 1;
        const std::vector<HostTensor> again = run_once(ready.executable, options);
        for (size_t i = 0; i < first.size(); ++i) REQUIRE(again[i].bytes == first[i].bytes);
        REQUIRE(sample_once(ready.executable) == sampled);
      }
    }
}

TEST_CASE(
    "a generation ends at logits that are not finite, in a graph's first step or a later one") {
  constexpr int64_t kMost = 14;
  const auto backend = value(Backend::open({.device = "cuda", .record = {}, .progress = {}}));
  const std::vector<int32_t>& prompt = kPrompts[0];
  const auto clean = value(make_ready(load_with_nan(210, tests_folder()), {}, *backend)).executable;
  const auto whole = take(*value(Generator::create(clean, {prompt}, kMost, {})), kMost);
  for (const size_t step : {0, 1, 4, 6, 9}) {
    CAPTURE(step);
    const int32_t token = whole[step];
    if (llvm::is_contained(prompt, token) ||
        llvm::find(whole, token) - whole.begin() != static_cast<ptrdiff_t>(step))
      continue;
    const auto model =
        value(make_ready(load_with_nan(token, tests_folder()), {}, *backend)).executable;
    const auto generator = value(Generator::create(model, {prompt}, kMost, {}));
    CHECK(take(*generator, static_cast<int64_t>(step) + 1) ==
          std::vector<int32_t>(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(step) + 1));
    const auto next = generator->next();
    REQUIRE_FALSE(next);
    CHECK(next.error().code == ExitCode::check_failed);
    CHECK(next.error().what ==
          fmt::format("the logits after {} tokens are not finite", prompt.size() + step + 1));
  }
}

TEST_CASE("a generation that begins again gives the same tokens") {
  const auto backend = value(Backend::open({.device = "cuda", .record = {}, .progress = {}}));
  for (const std::string& name : kGoldenModels) {
    CAPTURE(name);
    const Model loaded = value(load_model(tests_folder() + "/golden/" + name, {}));
    const auto model = value(make_ready(loaded, {}, *backend)).executable;
    for (const int64_t most : {1, 2, 9, 14}) {
      CAPTURE(most);
      const auto expected = take(*value(Generator::create(model, kPrompts, most, kSampling)), most);
      Started state = value(start_generation(*model, kPrompts, most, kSampling, {}));
      const auto generator = value(record_generation(model, std::move(state), most));
      for (const int64_t steps : {int64_t{0}, most, most, most / 2, int64_t{1}, most}) {
        CAPTURE(steps);
        REQUIRE(generator->restart().has_value());
        const std::vector<int32_t> tokens = take(*generator, steps);
        CHECK(tokens == std::vector(expected.begin(), expected.begin() + tokens.size()));
      }
    }
  }
}

/// A generation of its own length and batch: a session, recorded graphs and arenas of that shape.
struct Shape {
  std::vector<std::vector<int32_t>> prompts;
  int64_t steps;
};

std::vector<int32_t> counting(int64_t count) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<int32_t>(i * 7 % 60 + 1));
  return tokens;
}

class Generation {
 public:
  Generation(const std::shared_ptr<const Executable>& model, const Shape& shape)
      : left_(shape.steps),
        generator_(value(Generator::create(model, shape.prompts, shape.steps, kSampling))) {}
  /// False when nothing is left.
  bool take(int64_t steps) {
    for (; steps > 0 && left_ > 0; --steps, --left_)
      for (int32_t token : value(generator_->next())) tokens.push_back(token);
    return left_ > 0;
  }
  std::vector<int32_t> tokens;

 private:
  int64_t left_;
  std::unique_ptr<Generator> generator_;
};

TEST_CASE("sessions of other shapes, before, between and after, change nothing") {
  const std::vector<Shape> shapes = {
      {{{1, 17, 4, 150, 33, 9, 2}}, 12},
      {{counting(40), {5}, counting(3), {6, 7}}, 25},  // larger caches and arenas
      {{{5, 6, 7}, {8}}, 7},
      {{counting(70)}, 30}};
  const auto backend = value(Backend::open({.device = "cuda", .record = {}, .progress = {}}));
  for (const std::string& name : kGoldenModels)
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(name);
      CAPTURE(to_string(dtype));
      LoadOptions load;
      load.dtype = dtype;
      const Model model = value(load_model(tests_folder() + "/golden/" + name, load));
      std::vector<std::vector<int32_t>> expected;  // each of a model that has run nothing else
      for (const Shape& shape : shapes) {
        Generation fresh(value(make_ready(model, {}, *backend)).executable, shape);
        while (fresh.take(1)) {
        }
        expected.push_back(fresh.tokens);
      }
      const auto shared = value(make_ready(model, {}, *backend)).executable;
      for (const size_t i : {0, 1, 0, 3, 2, 1, 0}) {
        CAPTURE(i);
        Generation(shared, shapes[(i + 1) % shapes.size()]).take(4);  // left half-way
        Generation again(shared, shapes[i]);
        while (again.take(3)) {
        }
        CHECK(again.tokens == expected[i]);
      }
    }
}

}  // namespace
}  // namespace sinter
