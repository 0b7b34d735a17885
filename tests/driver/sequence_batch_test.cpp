// Sequences that come and go in a batch, against a generator of each alone.
#include "driver/generate/sequence_batch.h"

#include <map>

#include "driver/generate/generate_many.h"
#include "driver/small_models.h"
#include "frontends/model/build_model.h"
#include "kernels/float_attention/order.h"
#include "kernels/tiled_attention/order.h"
#include "runtime/compare.h"

namespace sinter::sequence_batch_test {
namespace {

using Tokens = std::vector<int32_t>;

Tokens alone(const std::shared_ptr<const Executable>& model, const Tokens& prompt, int64_t count,
             const Sampling& sampling = {}) {
  const auto generator = value(Generator::create(model, {prompt}, count, sampling));
  Tokens tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(value(generator->next())[0]);
  return tokens;
}

/// The tokens that a batch gives for each prompt, `counts[i]` for prompt i. A sequence that has its
/// tokens makes room for the next prompt.
std::vector<Tokens> through_places(SequenceBatch& batch, llvm::ArrayRef<Tokens> prompts,
                                   llvm::ArrayRef<int64_t> counts,
                                   llvm::ArrayRef<Sampling> samplings) {
  std::vector<Tokens> texts(prompts.size());
  std::map<SequenceBatch::Id, size_t> open;
  for (size_t next = 0; next < prompts.size() || !open.empty();) {
    for (; batch.free_places() > 0 && next < prompts.size(); ++next)
      open[value(batch.add(prompts[next], samplings[next]))] = next;
    for (const SequenceBatch::Token& token : value(batch.step())) {
      Tokens& text = texts[open.at(token.sequence)];
      text.push_back(token.token);
      if (static_cast<int64_t>(text.size()) < counts[open.at(token.sequence)]) continue;
      CHECK(batch.remove(token.sequence));
      open.erase(token.sequence);
    }
  }
  return texts;
}

TEST_CASE("of up to eight, a sequence's text depends neither on its place nor on the others") {
  std::vector<Tokens> prompts;
  std::vector<int64_t> counts;
  std::vector<Sampling> samplings;
  for (int i = 0; i < 12; ++i) {
    prompts.push_back(some_tokens(1 + i * 55 % 89, static_cast<uint64_t>(i)));
    counts.push_back(1 + i * 13 % 15);
    samplings.push_back({.temperature = i % 3 == 0 ? 0.0f : 1.5f, .seed = 7 * i});
  }
  for (const std::string& name : kGoldenModels) {
    CAPTURE(name);
    // The library multiplies matrices whose rows have 172 elements; wide types hide its roundings.
    const auto model = ready(load_golden(name, name == "llama" ? DType::f32 : DType::bf16));
    const auto batch = value(SequenceBatch::create(model, 4, 104));  // no multiple of 128
    CHECK(batch->places() == 4);
    const std::vector<Tokens> texts = through_places(*batch, prompts, counts, samplings);
    CHECK(batch->free_places() == 4);
    for (size_t i = 0; i < prompts.size(); ++i) {
      CAPTURE(i);
      CHECK(texts[i] == alone(model, prompts[i], counts[i], samplings[i]));
    }
  }
}

TEST_CASE("a sequence whose logits are not finite is named, and leaves the others as they are") {
  const auto clean = ready(load_golden("llama", DType::f32));
  const Tokens bad = some_tokens(6, 1), good = some_tokens(9, 4);
  const Tokens text = alone(clean, bad, 6), other = alone(clean, good, 6);
  const int32_t late = text[2];
  for (const Tokens& tokens : {bad, good, other}) REQUIRE_FALSE(llvm::is_contained(tokens, late));
  const auto batch = value(SequenceBatch::create(ready(load_with_nan(late)), 3, 104));
  const auto refused = batch->add(Tokens{5, late});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::check_failed);
  CHECK(batch->free_places() == 3);
  const SequenceBatch::Id first = value(batch->add(good)), second = value(batch->add(bad));
  for (size_t i = 0; i < 3; ++i) {
    const auto given = value(batch->step());
    CHECK((given[0].token == other[i] && given[1].token == text[i]));
  }
  for (int turn = 0; turn < 2; ++turn) {
    const auto step = batch->step();
    REQUIRE_FALSE(step);
    CHECK(step.error().code == ExitCode::check_failed);
    CHECK(step.error().what ==
          fmt::format("sequence {}: the logits after 9 tokens are not finite", second));
  }
  CHECK(batch->remove(second));
  for (size_t i = 3; i < 6; ++i) {
    const auto given = value(batch->step());
    CHECK((given.size() == 1 && given[0].sequence == first && given[0].token == other[i]));
  }
}

static_assert(kSequenceStep % attention_key_tile(1, 1) == 0 &&
              kSequenceStep % attention_key_tile(kMaxHeadWidth, kMaxHeadWidth) == 0 &&
              kSequenceStep % kFloatTileKeys == 0);

TEST_CASE("several sequences begin at whole steps, where the caches have room") {
  std::vector<Symbol> symbols = {{.name = "R", .low = 8, .high = 1024, .multiple = 8}};
  CHECK(sequence_rows(symbols, 1, 17) == 24);
  CHECK(sequence_rows(symbols, 2, 17) == 128);
  CHECK(sequence_rows(symbols, 8, 128) == 128);
  symbols[0].high = 1016;
  CHECK(sequence_rows(symbols, 8, 120) == 120);
  CHECK(sequence_rows(symbols, 7, 120) == 128);
}

/// The logits of a sequence at `place` of `places`: of its prompt's last token, and of `next`,
/// which it decodes beside sequences of other tokens in all other places.
std::vector<HostTensor> logits_at(const Executable& model, const Tokens& prompt, const Tokens& next,
                                  int64_t places, int64_t place, int64_t capacity) {
  const Program& program = model.program();
  const int64_t rows = sequence_rows(program.symbols, places, capacity);
  std::vector<int64_t> values = min_symbol_values(program.symbols);
  values[static_cast<size_t>(find_symbol(program.symbols, "R"))] = places * rows;
  const auto session = value(model.new_session(values));
  std::vector<int64_t> lengths(static_cast<size_t>(places), 0);
  const auto run = [&](std::string_view entry, llvm::ArrayRef<Tokens> tokens) {
    const DecoderCall call =
        pack_sequences(entry, program.symbols, tokens, lengths, rows, Wanted::last_of_each);
    for (size_t s = 0; s < tokens.size(); ++s) lengths[s] += static_cast<int64_t>(tokens[s].size());
    return value(session->run(entry, call.symbol_values, addresses_of(call.inputs))).outputs[0];
  };
  std::vector<HostTensor> logits;
  for (int64_t s = 0; s < places; ++s) {
    std::vector<Tokens> tokens(static_cast<size_t>(places));
    tokens[static_cast<size_t>(s)] =
        s == place ? prompt
                   : some_tokens(1 + (7 * s + capacity) % (capacity - 2), static_cast<uint64_t>(s));
    const HostTensor last = run("prefill", tokens);
    if (s == place) logits.push_back(last);
  }
  for (const int32_t token : next) {
    std::vector<Tokens> tokens;
    for (int64_t s = 0; s < places; ++s)
      tokens.push_back({s == place ? token : static_cast<int32_t>(s)});
    const HostTensor all = run("decode", tokens);
    const auto bytes = static_cast<ptrdiff_t>(all.bytes.size()) / places;
    const auto begin = all.bytes.begin() + place * bytes;
    logits.push_back({all.dtype, {1, all.dims[1]}, {begin, begin + bytes}});
  }
  return logits;
}

TEST_CASE("logits have the same bits at every place and beside up to seven other sequences") {
  for (const std::string name : {"gpt2", "llama3_gqa_scaled_rope", "mistral_window", "gemma2"})
    for (DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      CAPTURE(name);
      CAPTURE(to_string(dtype));
      const auto model = ready(load_golden(name, dtype));
      const int64_t positions = longest_text(model->program().symbols);
      for (int64_t places : {2, 3, 5, 8}) {
        CAPTURE(places);
        const int64_t capacity = positions - 9 * places, place = places - 1;
        const Tokens prompt = some_tokens(capacity - 3, 5), next = some_tokens(2, 6);
        const auto at = logits_at(*model, prompt, next, places, place, capacity),
                   first = logits_at(*model, prompt, next, 1, 0, capacity);
        for (size_t i = 0; i < at.size(); ++i) {
          const auto difference = value(compare_bits(at[i], first[i]));
          CHECK_MESSAGE(!difference, (difference ? to_string(*difference) : std::string()));
        }
      }
    }
}

TEST_CASE("more sequences than usual decode together in a plan for more") {
  LoadOptions options;
  options.dtype = DType::f32;
  options.sequences = 20;
  const auto model =
      ready(value(load_model(SINTER_TESTS_DIR "/golden/llama3_gqa_scaled_rope", options)));
  std::vector<Tokens> prompts;
  for (uint64_t i = 0; i < 20; ++i)
    prompts.push_back(some_tokens(static_cast<int64_t>(1 + i % 5), i));
  const auto batch = value(SequenceBatch::create(model, 20, 16));
  const std::vector<Tokens> texts =
      through_places(*batch, prompts, std::vector<int64_t>(20, 5), std::vector<Sampling>(20));
  for (size_t i = 0; i < prompts.size(); ++i) CHECK(texts[i] == alone(model, prompts[i], 5));
  options.sequences = 300;
  const auto refused = load_model(SINTER_TESTS_DIR "/golden/llama", options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().hint == "1 to 256 decode together");
}

TEST_CASE("a prompt is fed in chunks, and can be cancelled") {
  const auto model = ready(load_golden("llama", DType::f32));
  bool goes_on = true;
  PrefillOptions prefill;
  prefill.chunk = 4;
  prefill.progress = [&](int64_t, int64_t) { return goes_on; };
  const auto batch = value(SequenceBatch::create(model, 2, 24, prefill));
  goes_on = false;
  const Tokens prompt = some_tokens(10, 3);
  const auto cancelled = batch->add(prompt);
  REQUIRE_FALSE(cancelled);
  CHECK(cancelled.error().what == "the prompt was cancelled after 4 of 10 tokens");
  CHECK(batch->free_places() == 2);
  goes_on = true;
  CHECK(through_places(*batch, {prompt}, {6}, {Sampling{}})[0] == alone(model, prompt, 6));
}

TEST_CASE("what a batch cannot take is an error, and changes nothing") {
  const auto model = ready(load_golden("llama", DType::f32));
  const auto error = [](auto result) {
    REQUIRE_FALSE(result);
    return result.error().what;
  };
  CHECK(error(SequenceBatch::create(model, 9, 8)) == "9 places, 1 to 8 sequences decode together");
  CHECK(error(SequenceBatch::create(model, 0, 8)) == "0 places, 1 to 8 sequences decode together");
  const auto batch = value(SequenceBatch::create(model, 1, 8));
  CHECK(error(batch->add({})) == "a prompt has no tokens");
  CHECK(error(batch->add(some_tokens(9, 1))) == "a prompt of 9 tokens, a place has room for 8");
  CHECK(error(batch->remove(0)) == "no sequence 0");
  const Tokens prompt = some_tokens(7, 1);
  const auto id = value(batch->add(prompt));
  CHECK(error(batch->add(prompt)) == "all 1 places are taken");
  Tokens tokens;
  for (int i = 0; i < 2; ++i) tokens.push_back(value(batch->step())[0].token);
  CHECK(error(batch->step()) == "sequence 0 fills its place of 8 tokens");
  CHECK(tokens == alone(model, prompt, 2));
  CHECK(batch->remove(id));
  CHECK(value(batch->step()).empty());
}

TEST_CASE("many prompts give what each gives alone, and end at end tokens") {
  Model loaded = load_golden("llama", DType::f32);
  const ReadyPlan made = value(make_ready(loaded, {}, *cpu()));
  std::vector<Tokens> prompts;
  for (uint64_t i = 0; i < 30; ++i)
    prompts.push_back(some_tokens(static_cast<int64_t>(1 + i * 7 % 13), i));
  ManyOptions options;
  options.count = 6;
  options.places = 5;
  options.sampling = {.temperature = 1, .seed = 3};
  options.ends = {5, 9, 17, 33};
  std::map<size_t, Tokens> texts;
  int64_t told = 0;
  options.on_places = [&](int64_t places, int64_t bytes) {
    CHECK(places == 5);
    told = bytes;
  };
  options.on_sequence = [&](size_t prompt, llvm::ArrayRef<int32_t> tokens) {
    texts[prompt] = tokens.vec();
    return true;
  };
  const ManyGeneration done = value(generate_many(loaded, made, prompts, options));
  CHECK(told == done.cache_bytes);
  CHECK(told == SequenceBatch::cache_bytes(made.executable->program(), 5, 18));
  REQUIRE(texts.size() == prompts.size());
  int64_t tokens = 0, ended = 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    Sampling sampling = options.sampling;
    sampling.seed = sequence_seed(3, i);
    Tokens expected = alone(made.executable, prompts[i], options.count, sampling);
    const auto end = llvm::find_if(expected, [&](int32_t token) {
      return llvm::is_contained(options.ends, token) || llvm::is_contained(loaded.spec->eos, token);
    });
    ended += end != expected.end();
    expected.erase(end, expected.end());
    CHECK(texts[i] == expected);
    tokens += static_cast<int64_t>(expected.size());
  }
  CHECK(ended > 0);
  CHECK(done.tokens == tokens);
  // The callback ends it.
  texts.clear();
  options.on_sequence = [&](size_t prompt, llvm::ArrayRef<int32_t> given) {
    texts[prompt] = given.vec();
    return texts.size() < 3;
  };
  CHECK(value(generate_many(loaded, made, prompts, options)).steps > 0);
  CHECK(texts.size() == 3);
}

}  // namespace
}  // namespace sinter::sequence_batch_test
