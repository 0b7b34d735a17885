// Whole numbers on the command line: decimal digits, each option the same, and no silent second
// value.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::numbers_test {
namespace {

void check_usage(const std::vector<std::string>& arguments, const std::string& part) {
  const ProgramRun run = run_program(arguments);
  CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
  CAPTURE(run.err);
  CHECK(run.code == 2);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("sinter: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find(part) != std::string::npos);
}

// Options whose value is no whole number, with flags. Every other option is one, and is tried.
const std::set<std::string> kNoNumbers = {"--against",
                                          "--arch",
                                          "--attention",
                                          "--chat",
                                          "--check",
                                          "--chat-template",
                                          "--device",
                                          "--device-inputs",
                                          "--dot",
                                          "--dtype",
                                          "--end-token",
                                          "--file",
                                          "--forbid",
                                          "--greedy",
                                          "--head",
                                          "--embeddings",
                                          "--against-options",
                                          "--board",
                                          "--csv",
                                          "--dequantize",
                                          "--html",
                                          "--markdown",
                                          "--measure",
                                          "--with-text",
                                          "--inputs",
                                          "--invariant",
                                          "--ignore-eos",
                                          "--ignore-key",
                                          "--json",
                                          "--keep",
                                          "--kernels",
                                          "--kv",
                                          "--max-error",
                                          "--measured",
                                          "--no-fuse",
                                          "--no-machine-code",
                                          "--no-special-tokens",
                                          "--no-text",
                                          "--normalize",
                                          "--numerics",
                                          "--out",
                                          "--output",
                                          "--slow-products",
                                          "--pass",
                                          "--phase",
                                          "--products",
                                          "--prompt",
                                          "--prompt-file",
                                          "--prompt-ids",
                                          "--prompt-name",
                                          "--prompts",
                                          "--pooling",
                                          "--quiet",
                                          "--recompile",
                                          "--recompute",
                                          "--rendered-chat",
                                          "--record",
                                          "--require",
                                          "--reference",
                                          "--save-record",
                                          "--self",
                                          "--slower-than",
                                          "--state",
                                          "--symbol",
                                          "--system",
                                          "--temperature",
                                          "--teacher-forced",
                                          "--text",
                                          "--text-file",
                                          "--to",
                                          "--top-p",
                                          "--trace",
                                          "--truncate",
                                          "--tune",
                                          "--verbose",
                                          "--weights",
                                          "--why"};

TEST_CASE("every option that takes a whole number reads decimal digits alone") {
  // A reader of its own shows with one of the first three: every option has these, one has them
  // all.
  const std::vector<std::string> texts = {
      "010", "1e3", "99999999999999999999999999", "0x10", "+1", "1.0", "-0", "", "many"};
  size_t tried = 0;
  for (const std::string& command : all_commands()) {
    for (const std::string& option : options_of(command)) {
      if (kNoNumbers.contains(option)) continue;
      if (command == "ppl" && option == "--tokens") continue;  // a file
      for (size_t i = 0; i < (tried == 0 ? texts.size() : 3); ++i)
        check_usage({command, kGpt2, option, texts[i]}, option + ": ");
      ++tried;
    }
  }
  CHECK(tried >= 25);
}

TEST_CASE("a list of whole numbers has no empty item") {
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"", "the list of numbers is empty"},
      {" ", "the list of numbers is empty"},
      {",", "item 1 at byte 1 is empty"},
      {",1", "item 1 at byte 1 is empty"},
      {"1,,2", "item 2 at byte 3 is empty"},
      {"1, ,2", "item 2 at byte 4 is empty"},
      {"1,", "item 2 at byte 3 is empty"},
      {"7,010", "item 2 at byte 3, \"010\", has a leading zero"},
      {"1,-2", "item 2 at byte 3, \"-2\", is below 0"},
      {"1,0x10", "item 2 at byte 3, \"0x10\", is no decimal number"}};
  for (const auto& [text, message] : lists) {
    for (const auto& [command, option] : {std::pair("run", "--tokens"),
                                          {"generate", "--tokens"},
                                          {"embed", "--tokens"},
                                          {"tokenize", "--decode"},
                                          {"bench", "-p"}})
      check_usage({command, kGpt2, option, text}, fmt::format("{}: {}", option, message));
  }
  const auto run = [](const std::string& tokens) {
    return run_program({"run", kGpt2, "--tokens", tokens, "--device", "cpu", "--json"}).out;
  };
  CHECK(run("1,2,3") != "");
  for (const char* same : {"1 2 3", " 1, 2 ,3\n"}) CHECK(run(same) == run("1,2,3"));
}

TEST_CASE("a file of token ids is read as strictly, and is bad input") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/tokens";
  for (const auto& [text, message] :
       {std::pair("1,,2", "item 2 at byte 3 is empty"),
        {"", "the list of numbers is empty"},
        {"1\n2\n08\n", "item 3 at byte 5, \"08\", has a leading zero"}}) {
    write_whole(path, text);
    const ProgramRun run = run_program({"ppl", kGpt2, "--tokens", path, "--device", "cpu"});
    CHECK(run.code == 4);
    CHECK(run.err == fmt::format("sinter: {}: {}; write decimal numbers with commas between, e.g. "
                                 "1,2,3\n",
                                 path, message));
  }
}

TEST_CASE("a size is a whole number and given once") {
  for (const char* command : {"run", "bench", "profile"}) {
    std::vector<std::string> with = {command, kGpt2, "--symbol", "Z=2", "--symbol", "Z=4"};
    if (command == std::string("run")) with.insert(with.end(), {"--inputs", "none"});
    check_usage(with, "--symbol: Z is given twice, as 2 and as 4");
    with[5] = "Y=010";
    check_usage(with, "--symbol Y: \"010\" has a leading zero");
    with[5] = "=3";
    check_usage(with, "\"=3\" is not NAME=VALUE");
  }
  const auto kv = [](const std::string& text, const std::string& part) {
    check_usage({"generate", kGpt2, "--tokens", "1", "--kv", text}, part);
  };
  kv("sink=4,window=010", "--kv window: \"010\" has a leading zero");
  kv("sink=4,window=0", "--kv window: \"0\" is below 1");
  kv("sink=4,sink=5", "is no streaming cache");
  kv("sink=4,window=8,", "--kv window: \"8,\" is no decimal number");
  kv("sink=4,,window=8", "is no streaming cache");
  kv("sink=4,window=8,sink=5", "--kv window: \"8,sink=5\" is no decimal number");
  check_usage({"run", kGpt2, "--tokens", "1", "--device", "cuda:00"}, "give auto, cpu, cuda or");
}

}  // namespace
}  // namespace sinter::numbers_test
