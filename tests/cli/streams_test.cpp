// Standard streams that are closed or full: a lost result is an error, a lost message is none, and
// no file takes a stream's number.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::streams_test {
namespace {

/// Every command that prints a result and needs no GPU, printing at once, as it goes and by JSON.
std::vector<std::string> printing_commands(const std::string& module) {
  return {"--help",
          "--version",
          "compile --help",
          "inspect " + kGpt2,
          "compile " + module + " -o " + module + ".plan",
          "explain " + kGpt2 + " --json",
          "opt " + module,
          "run " + kGpt2 + " --tokens 1,2 --device cpu",
          "verify " + kGpt2 + " --dtype fp32 --steps 1 --device cpu",
          "generate " + kGpt2 + " --tokens 1,2 -n 3 --device cpu",
          "tokenize " SINTER_SAMPLES_DIR "/tiny-llama --text a",
          "generate " SINTER_SAMPLES_DIR "/tiny-llama --prompt a -n 3 --device cpu",
          "embed " SINTER_TESTS_DIR "/golden/bert_post_ln --tokens 1,2 --device cpu",
          "devices",
          "cache status",
          "cache clear"};
}

constexpr const char* kStreamed = R"(module @small {
  symbol N in [1, 64]
  entry @main(%x: f32[N, 32], %y: f32[N, 32]) -> (%sum) {
    %sum = add %x, %y : f32[N, 32]
  }
}
)";

ProgramRun run_line(const std::string& folder, const std::string& line) {
  return run_shell(fmt::format("export SINTER_CACHE_DIR={}/cache; \"$SINTER\" {}", folder, line));
}

TEST_CASE("a result that was not written exits 4 and names the system's error") {
  const TemporaryDirectory folder;
  const std::string module = folder.path() + "/small.sir";
  write_whole(module, kStreamed);
  for (const std::string& command : printing_commands(module)) {
    for (const auto& [to, why] : {std::pair(">/dev/full", "No space left on device"),
                                  std::pair(">&-", "Bad file descriptor")}) {
      const ProgramRun run = run_line(folder.path(), command + " " + to);
      CAPTURE(command);
      CAPTURE(run.err);
      CHECK(run.code == 4);
      CHECK(run.err.ends_with(
          fmt::format("sinter: standard output: cannot write: {}; check where it leads and the "
                      "space there\n",
                      why)));
    }
  }
}

TEST_CASE("a stderr that takes nothing changes no exit code and no result") {
  const TemporaryDirectory folder;
  const std::string module = folder.path() + "/small.sir";
  write_whole(module, kStreamed);
  std::vector<std::string> commands = printing_commands(module);
  commands.insert(commands.end(), {"", "no-such-command", "inspect " + kGpt2 + " --no-such-option",
                                   "run " SINTER_SAMPLES_DIR "/small-llama --tokens 999999",
                                   "inspect " + folder.path() + "/absent",
                                   "run " + kGpt2 + " --tokens 1 --device cuda:99",
                                   "explain " + kGpt2 + " --require l0.norm1,l0.res1"});
  for (const std::string& command : commands) {
    CAPTURE(command);
    const int code = run_line(folder.path(), command).code;
    for (const char* to : {"2>/dev/full", "2>&-"})
      CHECK(run_line(folder.path(), command + " " + to).code == code);
  }
  const ProgramRun refused =
      run_shell("\"$SINTER\" run " SINTER_SAMPLES_DIR "/small-llama --tokens 999999 2>&-");
  CHECK(refused.code == 4);
}

TEST_CASE("no file takes the number of a stream that is closed") {
  const TemporaryDirectory folder;
  const std::string module = folder.path() + "/small.sir", output = folder.path() + "/out.sir";
  write_whole(module, kStreamed);
  const auto write = [&](const std::string& closed) {
    const ProgramRun run =
        run_line(folder.path(), fmt::format("opt {} -o {} {}", module, output, closed));
    CAPTURE(closed);
    CHECK(run.code == 0);
    return read_whole(output);
  };
  const std::string text = write("");
  CHECK(text.starts_with("module @small"));
  for (const char* closed : {"<&-", ">&-", "2>&-", "<&- >&- 2>&-"}) CHECK(write(closed) == text);
  // Reading a closed standard input fails; no file is read in its place.
  CHECK(run_line(folder.path(), "opt - <&-").code == 4);
}

}  // namespace
}  // namespace sinter::streams_test
