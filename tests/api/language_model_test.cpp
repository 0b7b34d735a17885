// Text through the interface: the tokens of `sinter generate`, as a stream, ended and cancelled.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "sinter.h"

using namespace sinter;

namespace {

const std::string kTiny = SINTER_SAMPLES_DIR "/tiny-llama";

template <typename T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

}  // namespace

TEST_CASE("a config's key that is not known is refused, and ignored where the caller says so") {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / "sinter-api-ignored-keys";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json")
      << R"({"model_type": "llama", "vocab_size": 8, "hidden_size": 8, "color": 1, "mood": 2,
             "num_attention_heads": 1, "num_hidden_layers": 1, "intermediate_size": 8,
             "max_position_embeddings": 8})";
  const auto refused = Model::open(folder.string(), {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("/color: ") != std::string::npos);
  CHECK(refused.error().hint.find("give option ignore-key color") != std::string::npos);
  OpenOptions options;
  options.ignored_keys = {"mood", "color"};
  CHECK(Model::open(folder.string(), options));
  std::filesystem::remove_all(folder);
}

TEST_CASE("a stream's text is the text of its tokens, after the prompt's") {
  LanguageModel model = take(LanguageModel::open(kTiny, take(Device::open("cpu"))));
  const auto prompt = take(model.encode("Long ago, Mira the baker"));
  std::string streamed;
  GenerateOptions options;
  options.count = 24;
  options.on_token = [&](std::size_t sequence, std::int32_t, std::string_view text) {
    CHECK(sequence == 0);
    streamed += text;
    return true;
  };
  const auto tokens = take(model.generate({prompt}, options));
  REQUIRE(tokens.size() == 1);
  REQUIRE_FALSE(tokens[0].empty());
  std::vector<std::int32_t> all = prompt;
  all.insert(all.end(), tokens[0].begin(), tokens[0].end());
  const std::string whole = take(model.decode(all)), begin = take(model.decode(prompt));
  CHECK(whole == begin + streamed);
  CHECK(model.encode(std::string("a\0b", 3)).error().what == "a zero character in the text");
  const std::int32_t nul = 190;  // the token of the byte 0
  CHECK(take(model.decode({nul, prompt[1]})) ==
        std::string(1, '\0') + take(model.decode({prompt[1]})));
  // The same model serves other prompts, several at once, with the same tokens.
  options.on_token = {};
  const auto both = take(model.generate({take(model.encode("The")), prompt}, options));
  REQUIRE(both.size() == 2);
  CHECK(both[1] == tokens[0]);
}

TEST_CASE("a generation ends where the caller says, at an end token, and at an exception") {
  LanguageModel model = take(LanguageModel::open(kTiny, take(Device::open("cpu"))));
  const auto prompt = take(model.encode("The"));
  GenerateOptions options;
  options.count = 10;
  const auto all = take(model.generate({prompt}, options));
  REQUIRE(all[0].size() >= 4);
  options.ends = {all[0][3]};
  const auto ended = take(model.generate({prompt}, options));
  CHECK(ended[0].size() <= 3);
  options.stop_at_end = false;  // of the model's own end tokens
  CHECK(take(model.generate({prompt}, options)) == ended);
  options.stop_at_end = true;
  options.ends = {};
  int left = 2;
  options.on_token = [&](std::size_t, std::int32_t, std::string_view) { return --left > 0; };
  CHECK(take(model.generate({prompt}, options))[0].size() == 2);
  options.on_token = [](std::size_t, std::int32_t, std::string_view) -> bool { throw 1; };
  CHECK(model.generate({prompt}, options).error().code == Code::cancelled);
  options.on_token = {};
  options.ends = {5, 1024};
  CHECK(model.generate({prompt}, options).error().message.find("\"1024\", is above 1023") !=
        std::string::npos);
}

TEST_CASE(
    "a model that generates and its batches refuse one another, and say how many places are free") {
  LanguageModel model = take(LanguageModel::open(kTiny, take(Device::open("cpu"))));
  const auto prompt = take(model.encode("The"));
  sinter::Batch batch = take(sinter::Batch::create(model, 2, 64));
  const auto refused = [](const auto& result) {
    CHECK(result.error().message.find("in use") != std::string::npos);
  };
  int called = 0;
  GenerateOptions options;
  options.count = 1;
  options.on_token = [&](std::size_t, std::int32_t, std::string_view) {
    refused(batch.step());
    refused(batch.add(prompt));
    refused(sinter::Batch::create(model, 1, 64));
    CHECK(batch.free_places() == 2);
    return ++called > 0;
  };
  take(model.generate({prompt}, options));
  sinter::SamplingOptions sampling;
  sampling.progress = [&](std::string_view, std::int64_t, std::int64_t) {
    refused(model.generate({prompt}, {}));
    refused(batch.step());
    CHECK(batch.free_places() == 2);
    return ++called > 0;
  };
  take(batch.add(prompt, sampling));
  CHECK(batch.free_places() == 1);
  CHECK(called == 2);
}

TEST_CASE("sequences of a batch come and go, with the tokens that each has alone") {
  OpenOptions open;
  open.sequences = 12;
  LanguageModel model = take(LanguageModel::open(kTiny, take(Device::open("cpu")), open));
  const std::vector<std::vector<std::int32_t>> prompts = {
      take(model.encode("The")), take(model.encode("Long ago, Mira the baker")),
      take(model.encode("In the")), take(model.encode("A"))};
  GenerateOptions options;
  options.count = 6;
  options.stop_at_end = false;
  sinter::Batch batch = take(sinter::Batch::create(model, 2, 64));
  std::map<std::int64_t, std::size_t> open_sequences;
  std::vector<std::vector<std::int32_t>> texts(prompts.size());
  for (std::size_t next = 0; next < prompts.size() || !open_sequences.empty();) {
    for (; batch.free_places() > 0 && next < prompts.size(); ++next)
      open_sequences[take(batch.add(prompts[next]))] = next;
    for (const auto& [sequence, token] : take(batch.step())) {
      auto& text = texts[open_sequences.at(sequence)];
      text.push_back(token);
      if (text.size() < 6) continue;
      CHECK(batch.remove(sequence));
      open_sequences.erase(sequence);
    }
  }
  for (std::size_t i = 0; i < prompts.size(); ++i)
    CHECK(texts[i] == take(model.generate({prompts[i]}, options))[0]);
  // All in one call, more than the usual eight.
  CHECK(take(model.generate(std::vector(12, prompts[1]), options))[11] == texts[1]);
  CHECK(batch.places() == 2);
  CHECK(batch.remove(-1).error().message.find("no sequence -1") != std::string::npos);
  CHECK(batch.remove(7).error().message.find("no sequence 7") != std::string::npos);
  CHECK(sinter::Batch::create(model, 13, 64).error().code == Code::usage);
  CHECK(sinter::Batch::create(model, 1, 1 << 20).error().code == Code::usage);
  take(batch.add(prompts[0]));
  sinter::SamplingOptions cancel;
  cancel.progress = [](std::string_view, std::int64_t, std::int64_t) { return false; };
  CHECK(batch.add(prompts[0], cancel).error().code == Code::cancelled);
  CHECK(batch.free_places() == 1);
}

TEST_CASE("models on two threads generate the tokens of one") {
  const auto tokens = [] {
    LanguageModel model = take(LanguageModel::open(kTiny, take(Device::open("cpu"))));
    GenerateOptions options;
    options.count = 8;
    return take(model.generate({take(model.encode("Long ago"))}, options));
  };
  const auto alone = tokens();
  std::vector<std::vector<std::int32_t>> first, second;
  std::thread other([&] { first = tokens(); });
  second = tokens();
  other.join();
  CHECK(first == alone);
  CHECK(second == alone);
}

TEST_CASE("prompts are fed in calls of a chosen size, between which they can be cancelled") {
  LanguageModel model = take(LanguageModel::open(kTiny, take(Device::open("cpu"))));
  const auto prompt = take(model.encode("Long ago, Mira the baker went to the meadow"));
  GenerateOptions options;
  options.count = 6;
  const auto whole = take(model.generate({prompt}, options));
  std::vector<std::int64_t> told;
  options.progress = [&](std::string_view stage, std::int64_t done, std::int64_t total) {
    CHECK(stage == "prompts");
    CHECK(total == static_cast<std::int64_t>(prompt.size()));
    told.push_back(done);
    return true;
  };
  options.prefill_chunk = 5;
  CHECK(take(model.generate({prompt}, options)) == whole);
  CHECK(told.size() == (prompt.size() + 4) / 5);
  CHECK(told.back() == static_cast<std::int64_t>(prompt.size()));
  options.progress = [](std::string_view, std::int64_t done, std::int64_t) { return done < 10; };
  CHECK(model.generate({prompt}, options).error().code == Code::cancelled);
  options = {};
  options.count = 6;
  options.activation_memory = "100kB";
  CHECK(take(model.generate({prompt}, options)) == whole);
  options.activation_memory = "100";
  CHECK(model.generate({prompt}, options).error().code == Code::usage);
  options.activation_memory = "much";
  CHECK(model.generate({prompt}, options).error().message.find("option activation-memory") !=
        std::string::npos);
}

TEST_CASE("an option of draws without a temperature draws at temperature 1") {
  const Device cpu = take(Device::open("cpu"));
  LanguageModel model = take(LanguageModel::open(kTiny, cpu));
  const std::vector<std::int32_t> prompt = take(model.encode("Long ago, Mira"));
  const auto with = [&](auto change) {
    GenerateOptions options;
    options.count = 12;
    change(options);
    return take(model.generate({prompt}, options))[0];
  };
  const auto drawn = with([](GenerateOptions& all) { all.temperature = 1, all.seed = 4; });
  CHECK(with([](GenerateOptions& all) { all.seed = 4; }) == drawn);
  CHECK(with([](GenerateOptions& all) { all.top_p = 1, all.seed = 4; }) == drawn);
  const auto greedy = with([](GenerateOptions&) {});
  CHECK(drawn != greedy);
  CHECK(with([](GenerateOptions& all) { all.temperature = 0, all.top_k = 9; }) == greedy);
  Batch batch = take(Batch::create(model, 1, 64));
  SamplingOptions sampling;
  sampling.seed = 4;
  (void)take(batch.add(prompt, sampling));
  for (const std::int32_t token : drawn) CHECK(take(batch.step())[0].token == token);
}

TEST_CASE("loading is cancelled, and bad prompts and options are errors") {
  const Device cpu = take(Device::open("cpu"));
  CompileOptions cancel;
  cancel.progress = [](std::string_view stage, std::int64_t, std::int64_t) {
    return stage != "weights";
  };
  CHECK(LanguageModel::open(kTiny, cpu, {}, cancel).error().code == Code::cancelled);
  CHECK(LanguageModel::open("/no/such/model", cpu).error().code == Code::bad_input);
  LanguageModel model = take(LanguageModel::open(kTiny, cpu));
  CHECK(model.generate({}).error().code == Code::usage);
  CHECK(model.generate({{}}).error().code == Code::usage);
  CHECK(model.generate({{100000}}).error().message.find("100000") != std::string::npos);
  GenerateOptions options;
  options.temperature = -1;
  CHECK_FALSE(model.generate({{1}}, options));
  options = {};
  options.count = 0;
  CHECK_FALSE(model.generate({{1}}, options));
  CHECK(model.encode("\xff").error().code != Code::internal_error);
}
