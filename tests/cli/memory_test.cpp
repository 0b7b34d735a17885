// Memory that runs out: one line that says how much was asked for, and exit code 6.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

const std::string kGpt2 = SINTER_TESTS_DIR "/golden/gpt2";

ProgramRun limited(int mebibytes, const std::string& arguments) {
  return run_shell(fmt::format("ulimit -v {}; \"$SINTER\" {}", mebibytes * 1024, arguments));
}

bool one_line(const std::string& text) {
  return text.ends_with('\n') && std::count(text.begin(), text.end(), '\n') == 1;
}

TEST_CASE("a value that does not fit says how many bytes it has") {
  const TemporaryDirectory folder;
  const std::string module = folder.path() + "/large.sir";
  write_whole(module, R"(module @large {
  entry @f(%x: f32[1048576, 4096]) -> (%y) {
    %y = neg %x : f32[1048576, 4096]
  }
}
)");
  const ProgramRun run = limited(4096, "verify " + module + " --device cpu");
  CAPTURE(run.err);
  CHECK(run.code == 6);
  CHECK(run.err.find("no memory for") != std::string::npos);
  CHECK(one_line(run.err));
}

TEST_CASE("whatever the limit is, a command ends with its result or with one line") {
  int least = 16;  // with which the program starts at all
  while (limited(least, "--version").code != 0) least += 4;
  int without_memory = 0, done = 0;
  for (int more = 0; done < 2 && more < 512; more += 3) {
    const ProgramRun run = limited(least + more, "compile " + kGpt2 + " -q -o /dev/null/none");
    CAPTURE(more);
    CAPTURE(run.err);
    if (run.code != 6) {
      CHECK(run.code == 4);  // the folder cannot be made: the plan was
      ++done;
      continue;
    }
    ++without_memory;
    CHECK(run.err.starts_with("sinter: out of memory: "));
    CHECK(one_line(run.err));
  }
  CHECK(without_memory > 0);
  CHECK(done == 2);
  const ProgramRun run = limited(least, "explain " + kGpt2);
  CHECK(run.code == 6);
}

}  // namespace
}  // namespace sinter
