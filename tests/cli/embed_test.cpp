// sinter embed: a line of numbers a text, and the same as JSON.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

TEST_CASE("texts by the model's own tokenizer are those of its tokens") {
  const TemporaryDirectory folder;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(kBert + "/" + name, folder.path());
  std::filesystem::copy(SINTER_TESTS_DIR "/golden/tokenizers/wordpiece_bert/tokenizer.json",
                        folder.path());
  const ProgramRun texts = run_program({"embed", folder.path(), "--text", "a b", "--text", "c",
                                        "--json", "--normalize", "--device", "cpu"});
  REQUIRE_MESSAGE(texts.code == 0, texts.err);
  const auto json = nlohmann::json::parse(texts.out);
  CHECK(json["pooling"] == "mean");
  CHECK(json["normalized"] == true);
  REQUIRE(json["embeddings"].size() == 2);
  for (const auto& vector : json["embeddings"]) {
    double squares = 0;
    for (double x : vector) squares += x * x;
    CHECK(vector.size() == 64);
    CHECK(squares == doctest::Approx(1.0));
  }
  CHECK(json["embeddings"][0] != json["embeddings"][1]);
}

TEST_CASE("texts are lines of a file or of standard input, and are cut where that is asked for") {
  const TemporaryDirectory folder;
  for (const char* name : {"config.json", "model.safetensors"})
    std::filesystem::copy(kBert + "/" + name, folder.path());
  std::filesystem::copy(SINTER_TESTS_DIR "/golden/tokenizers/wordpiece_bert/tokenizer.json",
                        folder.path());
  const std::string file = folder.path() + "/texts.txt";
  std::ofstream(file) << "a b\r\n\nc\n";
  const ProgramRun given = run_program(
      {"embed", folder.path(), "--text", "a b", "--text", "", "--text", "c", "--device", "cpu"});
  REQUIRE_MESSAGE(given.code == 0, given.err);
  const ProgramRun read =
      run_program({"embed", folder.path(), "--text-file", file, "--device", "cpu"});
  REQUIRE_MESSAGE(read.code == 0, read.err);
  CHECK(read.out == given.out);

  std::string words;
  for (int i = 0; i < 200; ++i) words += "a ";
  std::ofstream(file) << words << "\n";
  const ProgramRun refused =
      run_program({"embed", folder.path(), "--text-file", file, "--device", "cpu"});
  CHECK(refused.code == 4);
  CHECK(refused.err.find("give --truncate") != std::string::npos);
  const ProgramRun cut =
      run_program({"embed", folder.path(), "--text-file", file, "--truncate", "--device", "cpu"});
  CHECK(cut.code == 0);
  CHECK(cut.err.find("1 text was cut to 128 tokens, the first is text 1") != std::string::npos);
}

TEST_CASE("a line of numbers for each list of tokens") {
  const ProgramRun run = run_program({"embed", kBert, "--tokens", "1,2,3", "--tokens", "4",
                                      "--pooling", "cls", "--device", "cpu"});
  REQUIRE_MESSAGE(run.code == 0, run.err);
  std::istringstream lines(run.out);
  std::string line;
  size_t count = 0;
  for (; std::getline(lines, line); ++count) CHECK(std::count(line.begin(), line.end(), ' ') == 63);
  CHECK(count == 2);
}

TEST_CASE("what embed refuses") {
  CHECK(run_program({"embed", kBert}).code == 2);
  CHECK(run_program({"embed", SINTER_TESTS_DIR "/golden/gpt2", "--tokens", "1"}).code == 2);
  CHECK(run_program({"embed", kBert, "--tokens", "999", "--device", "cpu"}).code == 4);
  CHECK(run_program({"generate", kBert, "--tokens", "1", "--device", "cpu"}).code == 2);
}

}  // namespace
}  // namespace sinter
