// How many tokens of prompts a call takes, by the bytes of the plan itself.
#include "driver/generate/prefill_chunk.h"

#include <fstream>
#include <sstream>

#include "driver/inspect/prompt_memory.h"
#include "driver/small_models.h"
#include "golden/models.h"
#include "runtime/temporary_directory.h"

namespace sinter::prefill_chunk_test {
namespace {

constexpr int64_t kWholeTiles = 64;

Result<PrefillChunk> chosen(const Program& program, const PromptSizes& sizes, int64_t bytes,
                            std::optional<int64_t> chunk = {}) {
  return choose_chunk(program, sizes, {bytes, chunk, {}});
}

TEST_CASE("a chunk has the most tokens whose arena fits, in steps of 64 where 64 fit") {
  for (const std::string name : kGoldenDecoders) {
    CAPTURE(name);
    const auto model = ready(load_golden(name, DType::f16));
    const Program& program = model->program();
    for (Wanted wanted : {Wanted::all, Wanted::last_of_each}) {
      const int64_t positions = longest_text(program.symbols);
      const PromptSizes sizes{positions, 1, positions, positions, wanted};
      const auto needs = [&](int64_t tokens) {
        return value(prefill_arena_bytes(program, sizes, tokens));
      };
      for (int64_t tokens = 1; tokens <= positions; tokens += 1 + tokens / 5) {
        CAPTURE(tokens);
        const PrefillChunk chunk = value(chosen(program, sizes, needs(tokens)));
        int64_t most = tokens;  // a few more may need no more memory
        while (most < positions && needs(most + 1) <= needs(tokens)) ++most;
        if (most < positions && most > kWholeTiles) most -= most % kWholeTiles;
        CHECK(chunk.tokens == most);
        CHECK(chunk.arena_bytes == needs(most));
        CHECK(chunk.activation_bytes == needs(tokens));
        CHECK(chunk.calls == (positions + most - 1) / most);
      }
    }
  }
}

TEST_CASE("a call takes tokens of several prompts, as many as N allows and are asked for") {
  const auto model = ready(load_golden("llama", DType::f32));  // 128 positions
  const Program& program = model->program();
  const PromptSizes sizes =
      prompt_sizes({some_tokens(100, 1), some_tokens(90, 2)}, 104, Wanted::last_of_each);
  CHECK(sizes.tokens == 190);
  CHECK(sizes.sequences == 2);
  CHECK(sizes.rows == 194);
  CHECK(value(chosen(program, sizes, kActivationBytes)).tokens == 190);
  CHECK(value(chosen(program, sizes, kActivationBytes)).calls == 1);
  CHECK(value(chosen(program, sizes, kActivationBytes, 50)).tokens == 50);
  CHECK(value(chosen(program, sizes, kActivationBytes, 50)).calls == 4);
  CHECK(value(chosen(program, sizes, kActivationBytes, 5000)).tokens == 190);
  const PromptSizes few = prompt_sizes({some_tokens(7, 1)}, 8, Wanted::last_of_each);
  CHECK(value(chosen(program, few, kActivationBytes)).tokens == 7);
  CHECK(value(chosen(program, few, kActivationBytes)).calls == 1);
  // All logits of one text can be wanted, and no more.
  PromptSizes all = sizes;
  all.wanted = Wanted::all;
  CHECK(value(chosen(program, all, kActivationBytes)).tokens == 128);
  // N ends at the caches' 8 texts here, at 16,384 tokens where texts are longer.
  CHECK(program.symbols[static_cast<size_t>(find_symbol(program.symbols, "N"))].high == 1024);
}

TEST_CASE("memory for less than one token is an error that says what is needed") {
  const auto model = ready(load_golden("llama", DType::f32));
  const PromptSizes sizes{100, 1, 100, 104, Wanted::last_of_each};
  const int64_t least = value(prefill_arena_bytes(model->program(), sizes, 1));
  CHECK(value(chosen(model->program(), sizes, least)).tokens == 1);
  const auto refused = chosen(model->program(), sizes, least - 1);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ExitCode::usage);
  CHECK(refused.error().message() ==
        fmt::format("llama: a call of one token needs {0} bytes for activations, {1} are allowed; "
                    "set activation-memory to {0}B or more",
                    least, least - 1));
}

TEST_CASE("sizes of memory") {
  const auto read = [](const char* text) { return value(parse_memory(text, "--memory")); };
  CHECK(read("2GB") == kActivationBytes);
  CHECK(read("1500MB") == 1'500'000'000);
  CHECK(read("3GiB") == int64_t{3} << 30);
  CHECK(read("512MiB") == int64_t{512} << 20);
  CHECK(read("7kB") == 7000);
  CHECK(read("7KiB") == 7168);
  CHECK(read("1B") == 1);
  CHECK(read("12345") == 12345);
  for (const char* text : {"", "GB", "0GB", "-1GB", "1.5GB", "01GB", "2 GB", "2gb", "2TB", "GB2",
                           "10000000000GB", "9223372036854775808"}) {
    CAPTURE(text);
    const auto size = parse_memory(text, "--memory");
    REQUIRE_FALSE(size.has_value());
    CHECK(size.error().code == ExitCode::usage);
    CHECK(
        size.error().message() ==
        fmt::format("--memory: \"{}\" is no size of memory; write for example 2GB, 1500MB or 2GiB",
                    text));
  }
}

/// The plan of Llama-2-7B in float16, with this number of positions.
std::shared_ptr<const Program> llama_2_7b(int64_t positions) {
  std::stringstream spec;
  spec << std::ifstream(SINTER_SAMPLES_DIR "/llama-2-7b.json").rdbuf();
  std::string text = spec.str();
  const std::string field = "\"max_positions\": 4096";
  const size_t at = text.find(field);
  REQUIRE(at != text.npos);
  text.replace(at, field.size(), fmt::format("\"max_positions\": {}", positions));
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/spec.json";
  std::ofstream(path) << text;
  const OpenedModel model = value(open_model(path));
  return value(compile(value(frozen_module(model, {})), {})).program;
}

TEST_CASE("Llama-2-7B: 8 prompts of 2,048 tokens and one of 32,768 fit one GPU") {
  constexpr int64_t kGpu = 80'000'000'000;  // the smallest board of the reference machine's kind
  const auto memory = [](int64_t positions, AskedPrompts prompts) {
    return value(prompt_memory(*llama_2_7b(positions), prompts, {}));
  };
  // No score is in memory: all tokens at once take what their activations do.
  const PromptMemory eight = memory(4096, {8, 2048});
  CHECK(eight.weight_bytes == 13'476'831'232 + 64 * 4);  // with the frequencies of positions
  CHECK(eight.cache_bytes == int64_t{8} * 2048 * 524'288);
  CHECK(eight.prefill.tokens == 16384);
  CHECK(eight.prefill.arena_bytes < 1'500'000'000);
  CHECK(eight.prefill.arena_bytes == eight.at_once_bytes);
  CHECK(eight.bytes() < 24'000'000'000);
  const PromptMemory one = memory(32768, {1, 32768});
  CHECK(one.cache_bytes == int64_t{32768} * 524'288);
  CHECK(one.prefill.arena_bytes <= kActivationBytes);
  CHECK(one.prefill.tokens > 16384);
  CHECK(one.bytes() < 33'000'000'000);
  CHECK(one.bytes() < kGpu);
}

TEST_CASE("prompts that a model has no room for are refused with both numbers") {
  const auto model = ready(load_golden("llama", DType::f32));
  const auto refused = [&](AskedPrompts prompts) {
    const auto memory = prompt_memory(model->program(), prompts, {});
    REQUIRE_FALSE(memory.has_value());
    CHECK(memory.error().code == ExitCode::usage);
    return memory.error().message();
  };
  CHECK(value(prompt_memory(model->program(), {8, 128}, {})).cache_bytes > 0);
  CHECK(refused({9, 128}) == "--prompts: 9 prompts, 8 decode together; ask for fewer");
  CHECK(refused({1, 129}) ==
        "--prompts: prompts of 129 tokens, the model has 128 positions; ask for shorter ones");
  for (const char* text : {"", "x", "8", "8x", "x8", "0x8", "8x0", "8x8x8", "8*8"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_prompts(text, "--prompts").has_value());
  }
  CHECK(value(parse_prompts("8x2048", "--prompts")).length == 2048);
}

}  // namespace
}  // namespace sinter::prefill_chunk_test
