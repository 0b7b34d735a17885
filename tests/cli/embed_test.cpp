// sinter embed: a line of numbers a text, and the same as JSON.
#include <doctest/doctest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::embed_test {
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

TEST_CASE("a GGUF file says how tokens are pooled, and so does its plan") {
  const TemporaryDirectory folder;
  const std::string model = SINTER_TESTS_DIR "/golden/gguf/bert", file = model + "/model.gguf",
                    plan = folder.path() + "/plan";
  const auto embedded = [](const std::string& path, const std::string& pooling) {
    std::vector<std::string> command = {"embed", path, "--tokens", "2,5,7,3", "--device", "cpu"};
    if (!pooling.empty()) command.insert(command.end(), {"--pooling", pooling});
    const ProgramRun run = run_program(command);
    REQUIRE_MESSAGE(run.code == 0, run.err);
    return run.out;
  };
  REQUIRE(run_program({"compile", file, "--arch", "sm_90a", "-o", plan}).code == 0);
  const std::string first = embedded(model, "cls");
  CHECK(first != embedded(model, ""));
  CHECK(embedded(file, "") == first);
  CHECK(embedded(plan, "") == first);
}

TEST_CASE("vectors are written as a .npy with the numbers that are printed") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/vectors.npy";
  std::vector<std::string> command = {"embed", kBert,      "--tokens", "1,2,3",    "--tokens",
                                      "4",     "--tokens", "5,6",      "--device", "cpu"};
  const ProgramRun printed = run_program(command);
  REQUIRE_MESSAGE(printed.code == 0, printed.err);
  command.insert(command.end(), {"-o", path});
  const ProgramRun written = run_program(command);
  REQUIRE_MESSAGE(written.code == 0, written.err);
  CHECK(written.out == "3 vectors of 64 numbers → " + path + "\n");
  const std::string bytes = read_whole(path);
  REQUIRE(bytes.size() == 128 + 3 * 64 * sizeof(float));
  CHECK(bytes.find("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 64), }") == 10);
  std::istringstream numbers(printed.out);
  for (size_t i = 0; i < size_t{3} * 64; ++i) {
    float stored = 0;
    double shown = 0;
    std::memcpy(&stored, bytes.data() + 128 + i * sizeof stored, sizeof stored);
    numbers >> shown;
    REQUIRE_FALSE(numbers.fail());
    CHECK(stored == doctest::Approx(shown));
  }

  command.push_back("--json");
  const auto json = nlohmann::json::parse(run_program(command).out);
  CHECK(json["output"] == path);
  CHECK_FALSE(json.contains("embeddings"));
}

TEST_CASE("a file of vectors that cannot be written leaves the old one, or none") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/vectors.npy";
  write_whole(path, "old");
  const auto refused = [&](const std::string& output, const std::string& tokens, int code,
                           const std::string& part) {
    const ProgramRun run =
        run_program({"embed", kBert, "--tokens", tokens, "-o", output, "--device", "cpu"});
    CAPTURE(run.err);
    CHECK(run.code == code);
    CHECK(run.out == "");
    CHECK(run.err.find(part) != std::string::npos);
  };
  refused(path, "999", 4, "token 999 is outside the vocabulary");
  CHECK(read_whole(path) == "old");
  refused(folder.path() + "/vectors.txt", "1", 2, "does not end in .npy");
  refused(folder.path() + "/none/vectors.npy", "1", 4, "cannot write: No such file or directory");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("what embed refuses") {
  CHECK(run_program({"embed", kBert}).code == 2);
  CHECK(run_program({"embed", SINTER_TESTS_DIR "/golden/gpt2", "--tokens", "1"}).code == 2);
  CHECK(run_program({"embed", kBert, "--tokens", "999", "--device", "cpu"}).code == 4);
  CHECK(run_program({"generate", kBert, "--tokens", "1", "--device", "cpu"}).code == 2);
}

}  // namespace
}  // namespace sinter::embed_test
