// The memory that prompts need, as commands take and tell it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::prompt_memory_test {
namespace {

using nlohmann::json;

const std::string kLlama = SINTER_TESTS_DIR "/golden/llama";
const std::string kTiny = SINTER_SAMPLES_DIR "/tiny-llama";
const std::string kSpec = SINTER_SAMPLES_DIR "/llama-2-7b.json";

ProgramRun run(std::vector<std::string> command) {
  ProgramRun done = run_program(command);
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  return done;
}
json json_of(std::vector<std::string> command) {
  command.emplace_back("--json");
  return json::parse(run(std::move(command)).out);
}

TEST_CASE("generate says in how many calls the prompts went, and the tokens are the same") {
  const std::vector<std::string> prompts = {"generate", kLlama, "--device", "cpu",
                                            "-n",       "8",    "--tokens", "1,2,3,4,5,6,7",
                                            "--tokens", "9,8,7"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), prompts.begin(), prompts.end());
    return more;
  };
  const json whole = json_of(prompts);
  CHECK(whole["prefill"]["calls"] == 1);
  CHECK(whole["prefill"]["chunk"] == 10);
  CHECK(whole["prefill"]["activation_bytes"] == 2'000'000'000);
  const json parts = json_of(with({"--prefill-chunk", "4"}));
  CHECK(parts["prefill"]["calls"] == 3);
  CHECK(parts["prefill"]["chunk"] == 4);
  CHECK(parts["tokens"] == whole["tokens"]);
  const int64_t arena = parts["prefill"]["arena_bytes"];
  CHECK(arena < whole["prefill"]["arena_bytes"]);
  // The limit is the memory that calls of four tokens need.
  const json fitting = json_of(with({"--activation-memory", std::to_string(arena)}));
  CHECK(fitting["prefill"]["chunk"] == 4);
  CHECK(fitting["tokens"] == whole["tokens"]);
  const ProgramRun said = run(with({"--prefill-chunk", "4", "-v"}));
  CHECK(said.err.find("prompts: 3 calls of at most 4 tokens, activations take ") !=
        std::string::npos);
}

TEST_CASE("ppl and verify --self feed their text by the same rule") {
  const TemporaryDirectory folder;
  const std::string tokens = folder.path() + "/tokens";
  std::string ids = "1";
  for (int id = 2; id <= 100; ++id) ids += fmt::format(",{}", id);
  write_whole(tokens, ids);
  const json whole = json_of({"ppl", kLlama, "--device", "cpu", "--tokens", tokens});
  CHECK(whole["prefill"]["calls"] == 1);
  const json parts =
      json_of({"ppl", kLlama, "--device", "cpu", "--tokens", tokens, "--prefill-chunk", "7"});
  CHECK(parts["prefill"]["calls"] == 15);
  CHECK(parts["perplexity"].get<double>() ==
        doctest::Approx(whole["perplexity"].get<double>()).epsilon(1e-5));
  const json self = json_of(
      {"verify", kTiny, "--self", "--device", "cpu", "--steps", "2", "--prefill-chunk", "100"});
  CHECK(self["passed"] == true);
  CHECK(self["prefill"]["chunk"] == 100);
  CHECK(self["prefill"]["calls"] == 6);
}

TEST_CASE("inspect states arenas at any sizes, and what prompts need") {
  const std::vector<std::string> sizes = {"inspect", kSpec,      "--symbol", "N=2048",   "--symbol",
                                          "R=16384", "--symbol", "K=16384",  "--symbol", "M=8"};
  const json entries = json_of(sizes)["entries"];
  CHECK(entries[0]["name"] == "prefill");
  CHECK(entries[0]["arena_bytes"] <= entries[0]["unfused_arena_bytes"]);
  const json one = json_of({"inspect", kSpec, "--symbol", "N=1", "--symbol", "R=16384", "--symbol",
                            "K=16384"})["entries"];
  CHECK(one[0]["arena_bytes"] < entries[0]["arena_bytes"]);
  CHECK(one[1]["arena_bytes"] == entries[1]["arena_bytes"]);  // decode: B=1 in both

  const json prompts = json_of({"inspect", kSpec, "--prompts", "8x4096"})["prompts"];
  CHECK(prompts["cache_bytes"] == int64_t{8} * 4096 * 524'288);
  CHECK(prompts["prefill"]["calls"] == 2);
  CHECK(prompts["prefill"]["arena_bytes"] <= 2'000'000'000);
  CHECK(prompts["at_once_bytes"] > prompts["prefill"]["arena_bytes"]);
  CHECK(prompts["bytes"] == prompts["weight_bytes"].get<int64_t>() +
                                prompts["cache_bytes"].get<int64_t>() +
                                prompts["prefill"]["arena_bytes"].get<int64_t>());
  const ProgramRun text = run({"inspect", kSpec, "--prompts", "8x4096"});
  CHECK(text.out.find(
            "\n8 prompts of 4096 tokens\n  weights      13.5 GB\n  caches       17.2 GB\n") !=
        std::string::npos);
  CHECK(text.out.find("  arena: ") != std::string::npos);
}

TEST_CASE("a plan's folder has the arenas of its own plan") {
  const TemporaryDirectory folder;
  const std::string plan = folder.path() + "/plan";
  const ProgramRun compiled =
      run({"compile", kLlama, "--no-fuse", "--no-machine-code", "-o", plan});
  CHECK(compiled.out.find(" arena ") != std::string::npos);
  const json own = json_of({"inspect", plan})["entries"][1];  // decode
  CHECK(own["arena_bytes"] == own["unfused_arena_bytes"]);
  const json fused = json_of({"inspect", kLlama})["entries"][1];
  CHECK(fused["arena_bytes"] < own["arena_bytes"]);
}

TEST_CASE("sizes of memory and prompts that cannot be are refused in one line") {
  const auto refused = [](std::vector<std::string> command, const std::string& part) {
    const ProgramRun done = run_program(command);
    CAPTURE(done.err);
    CHECK(done.code == 2);
    CHECK(done.out == "");
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
    CHECK(done.err.find(part) != std::string::npos);
  };
  const std::vector<std::string> generate = {"generate", kLlama,     "--device",
                                             "cpu",      "--tokens", "1"};
  const auto with = [&](const std::string& option, const std::string& value) {
    std::vector<std::string> command = generate;
    command.insert(command.end(), {option, value});
    return command;
  };
  refused(with("--activation-memory", "2TB"),
          "--activation-memory: \"2TB\" is no size of memory; write for example 2GB");
  refused(with("--activation-memory", "100"), "a call of one token needs ");
  refused(with("--activation-memory", "100"),
          " bytes for activations, 100 are allowed; set "
          "activation-memory to ");
  refused(with("--prefill-chunk", "0"), "--prefill-chunk");
  refused({"verify", kLlama, "--prefill-chunk", "3"}, "add --self");
  refused({"inspect", kLlama, "--prompts", "8"}, "\"8\" is not COUNTxTOKENS");
  refused({"inspect", kLlama, "--prompts", "1x129"}, "the model has 128 positions");
  refused({"inspect", kLlama, "--prefill-chunk", "3"}, "add --prompts COUNTxTOKENS");
  refused({"inspect", SINTER_TESTS_DIR "/golden/bert_post_ln", "--prompts", "1x3"},
          "only language models are prompted");
  refused({"embed", SINTER_TESTS_DIR "/golden/bert_post_ln", "--device", "cpu", "--tokens", "1,2,3",
           "--activation-memory", "1kB"},
          "text 1 of 3 tokens needs ");
}

}  // namespace
}  // namespace sinter::prompt_memory_test
