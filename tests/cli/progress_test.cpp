// Lines of progress without a terminal.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "cli/golden.h"
#include "cli/program.h"
#include "cli/stage_lines.h"

namespace sinter::progress_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_CASE("a line is due when the interval has passed, and not before") {
  const StageLines::Time start{};
  StageLines lines(seconds(5), start);
  CHECK(lines.due(start + seconds(60)) == std::nullopt);  // nothing goes on
  lines.set_stage("compiling");
  lines.line_written(start);
  CHECK(lines.due(start + milliseconds(4999)) == std::nullopt);
  CHECK(lines.due(start + seconds(5)) == "compiling ... 5 s");
  CHECK(lines.due(start + seconds(9)) == std::nullopt);
  lines.set_stage("float64");
  CHECK(lines.due(start + seconds(9)) == std::nullopt);  // a stage begins without a line
  CHECK(lines.due(start + seconds(11)) == "float64 ... 11 s");
  lines.line_written(start + seconds(15));  // another line counts too
  CHECK(lines.due(start + seconds(19)) == std::nullopt);
  CHECK(lines.due(start + seconds(20)) == "float64 ... 20 s");
  lines.set_stage("");
  CHECK(lines.due(start + seconds(60)) == std::nullopt);
}

TEST_CASE("a line for every interval however long a stage takes") {
  const StageLines::Time start{};
  StageLines lines(seconds(5), start);
  lines.set_stage("float64");
  int count = 0;
  for (int i = 0; i <= 1000; ++i) count += lines.due(start + milliseconds(100 * i)).has_value();
  CHECK(count == 20);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const std::vector<std::string> kVerify = {"verify", SINTER_SAMPLES_DIR "/small-llama", "--self",
                                          "--device", "cpu"};

TEST_CASE("verify --self says what it does, in plain lines of its own") {
  const ProgramRun run = run_program(kVerify, {"SINTER_PROGRESS_SECONDS=0.001"});
  CAPTURE(run.err);
  CHECK(run.code == 0);
  const std::vector<std::string> lines = lines_of(run.err);
  CHECK(lines.size() >= 2);
  for (const std::string& line : lines) {
    CAPTURE(line);
    CHECK(line.starts_with("sinter: "));
    CHECK(std::none_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < 32; }));
  }
  CHECK(std::any_of(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("float64 over") != std::string::npos ||
           line.find("predicting the text") != std::string::npos;
  }));
}

TEST_CASE("the interval between lines is 0 or a number of seconds that a clock can wait") {
  for (const char* text : {"inf", "nan", "-1", "1e300", "1e-300", "five", "5s", "0x", "86401"}) {
    const ProgramRun run =
        run_program({"--version"}, {std::string("SINTER_PROGRESS_SECONDS=") + text});
    CAPTURE(text);
    CAPTURE(run.err);
    CHECK(run.code == 2);
    CHECK(run.err.find("SINTER_PROGRESS_SECONDS: \"") != std::string::npos);
    CHECK(lines_of(run.err).size() == 1);
  }
  for (const char* text : {"", "0", "0.001", "1e3", "86400"})
    CHECK(run_program({"--version"}, {std::string("SINTER_PROGRESS_SECONDS=") + text}).code == 0);
}

TEST_CASE("compile says what it does, and says nothing more when it is done soon") {
  const TemporaryDirectory folder;
  const std::vector<std::string> command = {"compile", kGpt2, "-o", folder.path() + "/plan"};
  const ProgramRun run = run_program(command, {"SINTER_PROGRESS_SECONDS=0.001"});
  CAPTURE(run.err);
  CHECK(run.code == 0);
  CHECK(run.err.find("sinter: compiling ... ") != std::string::npos);
  const ProgramRun soon = run_program(command, {"SINTER_PROGRESS_SECONDS=1000"});
  CHECK(soon.err.find(" ... ") == std::string::npos);
}

TEST_CASE("-q says nothing") {
  std::vector<std::string> command = kVerify;
  command.push_back("-q");
  CHECK(run_program(command, {"SINTER_PROGRESS_SECONDS=0.001"}).err == "");
}

}  // namespace
}  // namespace sinter::progress_test
