#include <doctest/doctest.h>

#include <algorithm>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::profile_test {
namespace {

TEST_CASE("a profile without a GPU exits 5 with one line, and leaves no file") {
  const TemporaryDirectory folder;
  const std::string trace = folder.path() + "/trace.json";
  const ProgramRun run = run_program({"profile", kGpt2, "--device", "cpu", "--trace", trace});
  CAPTURE(run.err);
  CHECK(run.code == 5);
  CHECK(run.out == "");
  CHECK(run.err ==
        "sinter: a profile needs a GPU, and the device is cpu: as asked; run it on a machine with "
        "one\n");
  CHECK(folder_contents(folder.path()).empty());
}

TEST_CASE("bad options of a profile exit 2") {
  CHECK(run_program({"profile", kGpt2, "-n", "0"}).code == 2);
  CHECK(run_program({"profile", kGpt2, "-p", "0"}).code == 2);
  CHECK(run_program({"profile", kGpt2, "--symbol", "N"}).code == 2);
  CHECK(run_program({"profile"}).code == 2);
}

}  // namespace
}  // namespace sinter::profile_test
