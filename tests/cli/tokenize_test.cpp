// Texts to ids and back on the command line.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::tokenize_test {
namespace {

using nlohmann::json;

const std::string kTiny = SINTER_SAMPLES_DIR "/tiny-llama";
const std::string kTokenizers = SINTER_TESTS_DIR "/golden/tokenizers/";

std::string output(const std::vector<std::string>& arguments) {
  const ProgramRun run = run_program(arguments);
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(run.err == "");
  return run.out;
}

void check_tokenize_error(const std::vector<std::string>& arguments, int code,
                          const std::string& part) {
  const ProgramRun run = run_program(arguments);
  CAPTURE(run.err);
  CHECK(run.code == code);
  CHECK(run.out == "");
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find(part) != std::string::npos);
}

TEST_CASE("tokenize shows ids, pieces and what each adds to the text") {
  const std::string shown = output({"tokenize", kTiny, "--text", "Mira \xc3\xa9\n"});
  CHECK(shown.starts_with("0,"));
  CHECK(shown.find("at   id  piece  text\n 0    0  <s>    \"<s>\"\n") != std::string::npos);
  // A character of two tokens appears with its second one.
  CHECK(shown.find("\xc3\x83      \"\"\n") != std::string::npos);
  CHECK(shown.find("\xc2\xa9      \"\xc3\xa9\"\n") != std::string::npos);
  CHECK(shown.find("\"\\x0a\"\n") != std::string::npos);
}

TEST_CASE("an empty text has the special tokens alone") {
  for (const std::vector<std::string>& text :
       {std::vector<std::string>{"--text="}, {"--text", ""}, {"--text=", "--json"}}) {
    std::vector<std::string> arguments = {"tokenize", kTiny};
    arguments.insert(arguments.end(), text.begin(), text.end());
    const std::string shown = output(arguments);
    CHECK(shown.find("<s>") != std::string::npos);
  }
  CHECK(
      output({"tokenize", kTiny, "--text=", "--json", "--no-special-tokens"}).find("\"ids\": []") !=
      std::string::npos);
}

TEST_CASE("tokenize gives what the reference libraries give, from every kind of tokenizer file") {
  const TemporaryDirectory folder;
  for (const auto& entry : std::filesystem::directory_iterator(kTokenizers)) {
    if (!entry.is_directory()) continue;
    CAPTURE(entry.path().string());
    size_t checked = 0;
    for (const json& row : json::parse(read_whole(entry.path().string() + "/cases.json"))) {
      const std::string text = row["text"];
      if (text.find('\0') != text.npos || checked == 4) continue;
      ++checked;
      write_whole(folder.path() + "/text", text);
      const json whole = json::parse(
          output({"tokenize", entry.path(), "--file", folder.path() + "/text", "--json"}));
      CHECK(whole["ids"] == row["ids"]);
      CHECK(whole["tokens"].size() == row["ids"].size());
      const json bare =
          json::parse(output({"tokenize", entry.path(), "--file", folder.path() + "/text", "--json",
                              "--no-special-tokens"}));
      CHECK(bare["ids"] == row["ids_no_special"]);
      if (row["ids"].empty()) continue;
      const std::string ids = fmt::format("{}", fmt::join(row["ids"].get<std::vector<int>>(), ","));
      const std::string skipped = row["decoded_skip"];
      CHECK(output({"tokenize", entry.path(), "--decode", ids, "--no-special-tokens"}) ==
            skipped + "\n");
    }
    CHECK(checked > 0);
  }
}

TEST_CASE("tokenize finds a tokenizer.bin beside a .bin, and takes a tokenizer file itself") {
  const TemporaryDirectory folder;
  std::filesystem::copy_file(kTokenizers + "llama2c/tokenizer.bin",
                             folder.path() + "/tokenizer.bin");
  write_whole(folder.path() + "/stories.bin", "never read");
  const std::string beside = output({"tokenize", folder.path() + "/stories.bin", "--text", "Hi"});
  CHECK(beside == output({"tokenize", kTokenizers + "llama2c/tokenizer.bin", "--text", "Hi"}));
  CHECK(beside == output({"tokenize", kTokenizers + "llama2c", "--text", "Hi"}));
}

TEST_CASE("tokenize says what is wrong in one line") {
  const TemporaryDirectory folder;
  const std::string text = folder.path() + "/text";
  write_whole(text, "abc\xff");
  check_tokenize_error({"tokenize", kTiny}, 2, "give one of --text, --file and --decode");
  check_tokenize_error({"tokenize", kTiny, "--text", "a", "--decode", "1"}, 2, "give one of");
  check_tokenize_error({"tokenize", kTiny, "--text", "a\xff"}, 4, "--text: byte 1 is 0xff");
  check_tokenize_error({"tokenize", kTiny, "--file", text}, 4, text + ": byte 3 is 0xff");
  check_tokenize_error({"tokenize", kTiny, "--file", folder.path() + "/none"}, 4,
                       "none: cannot open");
  check_tokenize_error({"tokenize", kTiny, "--decode", "1,x"}, 2,
                       "--decode: item 2 at byte 3, \"x\", is no decimal number");
  check_tokenize_error({"tokenize", kTiny, "--decode", "1024"}, 4,
                       "--decode: the id 1024 is not in the tokenizer's vocabulary of 1024");
  check_tokenize_error(
      {"tokenize", folder.path(), "--text", "a"}, 4,
      "neither config.json nor model.sir; it holds text; a Hugging Face folder has");
  check_tokenize_error({"tokenize", folder.path() + "/absent", "--text", "a"}, 4,
                       "absent: no such file or folder");
  std::filesystem::create_symlink("nowhere", folder.path() + "/tokenizer.json");
  check_tokenize_error({"tokenize", folder.path(), "--text", "a"}, 4, "symbolic link");
}

TEST_CASE("a prompt of a megabyte of one character") {
  const TemporaryDirectory folder;
  write_whole(folder.path() + "/text", std::string(1 << 20, 'a'));
  const json result = json::parse(output(
      {"tokenize", kTiny, "--file", folder.path() + "/text", "--json", "--no-special-tokens"}));
  std::string text;
  for (const json& token : result["tokens"]) text += token["text"].get<std::string>();
  CHECK(text == std::string(1 << 20, 'a'));
}

}  // namespace
}  // namespace sinter::tokenize_test
