// Prompts fed in several calls against prompts fed in one.
//
// Every op whose order of operations the IR states gives a token the same bits for every number of
// tokens in its call. Library products promise that for no other number of rows, on a GPU
// (cuBLASLt) as on the host (OpenBLAS). So there are two kinds of tests: plans whose calls have at
// most eight tokens have no library products and are compared bit for bit; plans as they are used
// are compared within the rounding errors of their products.
#include "driver/generate/feed_prompts.h"

#include "driver/generate/generate.h"
#include "driver/generate/generation_state.h"
#include "driver/generate/perplexity.h"
#include "driver/small_models.h"
#include "golden/models.h"
#include "runtime/compare.h"

namespace sinter::feed_prompts_test {
namespace {

using Tokens = std::vector<int32_t>;
using Prompts = std::vector<Tokens>;

constexpr int64_t kChunks[] = {1, 7, 16};

TEST_CASE("calls take the tokens of all prompts in order, each once") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Prompts prompts;
    for (int32_t draw : some_tokens(1 + static_cast<int64_t>(seed % 8), seed))
      prompts.push_back(some_tokens(1 + draw % 40, seed + 1));
    const int64_t chunk = 1 + static_cast<int64_t>(seed * 7 % 50);
    const std::vector<PromptCall> calls = cut_prompts(prompts, chunk);
    Prompts fed(prompts.size());
    std::vector<int> ends(prompts.size(), 0);
    for (size_t c = 0; c < calls.size(); ++c) {
      int64_t count = 0;
      for (size_t s = 0; s < prompts.size(); ++s) {
        CHECK(calls[c].lengths[s] == static_cast<int64_t>(fed[s].size()));
        fed[s].insert(fed[s].end(), calls[c].tokens[s].begin(), calls[c].tokens[s].end());
        count += static_cast<int64_t>(calls[c].tokens[s].size());
        if (calls[c].ends[s]) {
          ++ends[s];
          CHECK(fed[s].size() == prompts[s].size());
        }
      }
      CHECK((c + 1 < calls.size() ? count == chunk : count >= 1 && count <= chunk));
    }
    CHECK(fed == prompts);
    CHECK(ends == std::vector<int>(prompts.size(), 1));
  }
}

/// The model with at most eight tokens in a call of prefill.
std::shared_ptr<const Executable> of_eight_tokens(Model model) {
  for (Symbol& symbol : model.module.symbols)
    if (symbol.name == "N" || symbol.name == "M") symbol.high = 8;
  return ready(model);
}

/// The values after the prompts are fed: logits of each, and all caches.
std::vector<HostTensor> fed(const Executable& model, const Prompts& prompts, int64_t capacity,
                            int64_t chunk) {
  const Program& program = model.program();
  std::vector<int64_t> values = min_symbol_values(program.symbols);
  values[static_cast<size_t>(find_symbol(program.symbols, "R"))] =
      static_cast<int64_t>(prompts.size()) * capacity;
  const auto session = value(model.new_session(values));
  std::vector<HostTensor> result = {
      value(feed_prompts(*session, program, prompts, capacity, chunk))};
  for (size_t i = 0; i < program.states.size(); ++i) result.push_back(value(session->state(i)));
  return result;
}

void check_same_bits(const std::vector<HostTensor>& a, const std::vector<HostTensor>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);  // 0: logits, then caches
    const auto difference = value(compare_bits(a[i], b[i]));
    CHECK_MESSAGE(!difference, (difference ? to_string(*difference) : std::string()));
  }
}

// Windows of golden models are 5 to 9 tokens.
Prompts unequal() { return {some_tokens(21, 1), some_tokens(1, 2), some_tokens(9, 3)}; }

bool has_library_products(const Executable& model) {
  return llvm::any_of(model.program().find_entry("prefill")->steps, [&](const Step& step) {
    return step_facts(model.program(), step).kind == "gemm";
  });
}

TEST_CASE("stated orders: logits and caches have the same bits for every chunk") {
  std::vector<std::string> left_out;
  size_t turn = 0;
  for (const std::string name : kGoldenDecoders)
    for (DType dtype : {DType::f32, turn++ % 2 == 0 ? DType::f16 : DType::bf16}) {
      CAPTURE(name);
      CAPTURE(to_string(dtype));
      const auto model = of_eight_tokens(load_golden(name, dtype));
      if (has_library_products(*model)) {
        left_out.push_back(name);
        continue;
      }
      // Calls that nothing stands before: six tokens of three prompts.
      const Prompts few = {some_tokens(3, 1), some_tokens(1, 2), some_tokens(2, 3)};
      const auto whole = fed(*model, few, 8, 6);
      for (int64_t chunk : {1, 3, 5}) check_same_bits(fed(*model, few, 8, chunk), whole);
      // Longer than a call, behind filled caches.
      const auto eights = fed(*model, unequal(), 24, 8);
      for (int64_t chunk : {3, 7}) check_same_bits(fed(*model, unequal(), 24, chunk), eights);
    }
  // Rows of 172 and of 20 elements, no multiples of 8, are multiplied by the library.
  CHECK(left_out == std::vector<std::string>{"llama", "llama", "qwen2_moe", "qwen2_moe"});
}

TEST_CASE("library products: chunks differ from one call by roundings alone") {
  // Sums of at most 256 products of float32; each of the five products that a difference goes
  // through in a layer may be off by its tolerance, of at most four layers and the logits.
  constexpr int kProducts = 5 * 4 + 1;
  Tolerance allowed = tolerance(DType::f32, 256);
  allowed.relative *= kProducts;
  allowed.absolute *= kProducts;
  for (const std::string name : kGoldenDecoders) {
    CAPTURE(name);
    const auto model = ready(load_golden(name, DType::f32));
    const auto whole = fed(*model, unequal(), 24, 31);
    for (int64_t chunk : kChunks) {
      CAPTURE(chunk);
      const auto parts = fed(*model, unequal(), 24, chunk);
      for (size_t i = 0; i < whole.size(); ++i) {
        const auto excess = value(exceeds(parts[i], to_doubles(whole[i]), allowed));
        CHECK_MESSAGE(
            !excess,
            (excess ? fmt::format("{} elements, element {} is {}, expected {} ± {}", excess->count,
                                  excess->index, excess->value, excess->reference, excess->allowed)
                    : std::string()));
      }
    }
  }
}

Generation generated(const Model& model, const Prompts& prompts, std::optional<int64_t> chunk) {
  GenerateOptions options;
  options.backend = cpu();
  options.count = 12;
  options.stop_at_eos = false;
  options.prefill.chunk = chunk;
  return value(generate(model, prompts, options));
}

TEST_CASE("texts go on alike, however their prompts were fed") {
  for (const std::string name : kGoldenDecoders) {
    CAPTURE(name);
    const Model model = load_golden(name, DType::f32);
    const Generation whole = generated(model, unequal(), {});
    CHECK(whole.prefill.calls == 1);
    CHECK(whole.prefill.tokens == 31);
    for (int64_t chunk : kChunks) {
      const Generation parts = generated(model, unequal(), chunk);
      CHECK(parts.tokens == whole.tokens);
      CHECK(parts.prefill.calls == (31 + chunk - 1) / chunk);
      CHECK(parts.prefill.arena_bytes < whole.prefill.arena_bytes);
    }
  }
}

TEST_CASE("a streaming cache: a text longer than the cache goes on alike") {
  const StreamingCache cache{.sink = 3, .window = 9};
  for (const std::string name : {"llama", "gpt_neox_sequential", "phi"}) {
    CAPTURE(name);
    const Model model = load_golden(name, DType::f32, cache);
    for (int64_t length : {1, 8, 12, 13, 40}) {
      const Prompts prompt = {some_tokens(length, 7)};
      const Generation whole = generated(model, prompt, {});
      for (int64_t chunk : kChunks) CHECK(generated(model, prompt, chunk).tokens == whole.tokens);
    }
  }
}

TEST_CASE("a text is predicted alike, however it is fed") {
  const Model model = load_one_layer(DType::f32);
  const Tokens text = some_tokens(100, 2);
  for (bool recompute : {false, true}) {
    PerplexityOptions options;
    options.backend = cpu();
    options.window = 40;
    options.recompute = recompute;
    const Perplexity whole = value(perplexity(model, text, options));
    CHECK(whole.prefill.tokens == 40);
    for (int64_t chunk : kChunks) {
      options.prefill.chunk = chunk;
      const Perplexity parts = value(perplexity(model, text, options));
      CHECK(parts.prefill.tokens == chunk);
      CHECK(parts.predicted == whole.predicted);
      CHECK(parts.mean() == doctest::Approx(whole.mean()).epsilon(1e-6));
    }
  }
}

TEST_CASE("prompts that are cancelled half-way leave the model as it was") {
  const auto model = ready(load_golden("llama", DType::f32));
  const auto tokens = [&](const PrefillOptions& prefill) -> Result<Tokens> {
    SINTER_LET(generator, Generator::create(model, unequal(), 6, {}, {}, prefill));
    Tokens all;
    for (int step = 0; step < 6; ++step) {
      SINTER_LET(next, generator->next());
      all.insert(all.end(), next.begin(), next.end());
    }
    return all;
  };
  PrefillOptions prefill;
  prefill.chunk = 7;
  std::vector<int64_t> told;
  prefill.progress = [&](int64_t done, int64_t total) {
    CHECK(total == 31);
    told.push_back(done);
    return true;
  };
  const Tokens expected = value(tokens(prefill));
  CHECK(told == std::vector<int64_t>{7, 14, 21, 28, 31});
  prefill.progress = [](int64_t done, int64_t) { return done < 21; };
  const auto cancelled = tokens(prefill);
  REQUIRE_FALSE(cancelled.has_value());
  CHECK(cancelled.error().code == ExitCode::cancelled);
  CHECK(cancelled.error().message() ==
        "the prompts were cancelled after 21 of 31 tokens; generate again");
  prefill.progress = {};
  CHECK(value(tokens(prefill)) == expected);
}

TEST_CASE("a generation that its reader ends leaves nothing behind") {
  const Model loaded = load_golden("llama", DType::f32);
  const OpenedModel model(loaded);
  const ReadyPlan ready = value(make_ready(model, {}, *cpu()));
  GenerateOptions options;
  options.count = 12;
  options.stop_at_eos = false;
  options.prefill.chunk = 3;
  const Prompts prompts = unequal();
  const auto whole = value(generate(loaded, ready, prompts, options)).tokens;
  for (size_t ended : {size_t{1}, size_t{5}}) {
    options.on_token = [&, count = size_t{0}](size_t, int32_t) mutable {
      return ++count < ended * prompts.size();
    };
    const auto part = value(generate(loaded, ready, unequal(), options)).tokens;
    for (size_t s = 0; s < part.size(); ++s)
      CHECK(part[s] == Tokens(whole[s].begin(), whole[s].begin() + static_cast<ptrdiff_t>(ended)));
    options.on_token = {};
    CHECK(value(generate(loaded, ready, unequal(), options)).tokens == whole);
  }
}

TEST_CASE("texts longer than the context are refused before anything runs") {
  const auto model = ready(load_golden("llama", DType::f32));  // 128 positions
  PrefillOptions prefill;
  prefill.chunk = 16;
  prefill.progress = [](int64_t, int64_t) {
    FAIL("a call was made");
    return true;
  };
  const auto refused = [&](const Prompts& prompts, int64_t most) {
    const auto generator = Generator::create(model, prompts, most, {}, {}, prefill);
    REQUIRE_FALSE(generator);
    return generator.error().message();
  };
  CHECK(refused({some_tokens(4, 1), some_tokens(129, 2)}, 1) ==
        "llama: 129 tokens and 1 more, the model has 128 positions; ask for fewer");
  CHECK(refused({some_tokens(120, 1)}, 10) ==
        "llama: 120 tokens and 10 more, the model has 128 positions; ask for fewer");
}

TEST_CASE("more prompts than a text may have tokens are fed in several calls") {
  LoadOptions options;
  options.dtype = DType::f32;
  options.sequences = 130;
  const auto model = ready(value(load_model(SINTER_TESTS_DIR "/golden/llama", options)));
  const Prompts prompts(130, Tokens{5});  // 128 positions
  const auto generator = value(Generator::create(model, prompts, 1, {}));
  CHECK(generator->prefill().calls == 2);
  CHECK(value(generator->next()).size() == 130);
}

TEST_CASE("prompts longer than the context are refused by their number") {
  const Model model = load_golden("llama", DType::f32);  // 128 positions
  const auto refused = [&](const Prompts& prompts) {
    const auto status = check_prompts(model, prompts, 4);
    REQUIRE_FALSE(status);
    return status.error().what;
  };
  CHECK(refused({some_tokens(126, 1)}) == "126 tokens and 4 more, the model has 128 positions");
  CHECK(refused({some_tokens(3, 1), some_tokens(126, 2)}) ==
        "prompt 2: 126 tokens and 4 more, the model has 128 positions");
}

TEST_CASE("a call that fails adds no token to a sequence") {
  const auto model = ready(load_golden("llama", DType::f32));
  const auto start = [&] {
    Decoder decoder = value(Decoder::create(model, 2, 16));
    value(decoder.prefill({some_tokens(9, 1), some_tokens(4, 2)}));
    return decoder;
  };
  Decoder decoder = start(), other = start();
  const std::vector<int64_t> before = decoder.lengths().vec();
  // One sequence would exceed its cache; then a token that is none.
  CHECK_FALSE(decoder.prefill({some_tokens(2, 3), some_tokens(13, 4)}).has_value());
  CHECK(decoder.lengths().vec() == before);
  CHECK_FALSE(decoder.prefill({{5}, {1, 211}}).has_value());
  CHECK(decoder.lengths().vec() == before);
  const auto next = [](Decoder& one) { return value(one.prefill({{5, 6}, {7}})).outputs[0]; };
  check_same_bits({next(decoder)}, {next(other)});
}

}  // namespace
}  // namespace sinter::feed_prompts_test
