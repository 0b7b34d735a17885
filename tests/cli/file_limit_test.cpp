// A limit on the size of files (ulimit -f) is an error like a full disk: exit code 4, nothing left.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::file_limit_test {
namespace {

TEST_CASE("a file that reaches its limit is an error, and nothing is left of it") {
  // Each writes more than the 1024 bytes that are allowed.
  for (const std::string& command : std::vector<std::string>{
           "compile " + kGpt2 + " -o out",
           "explain " + kGpt2 + " --html out",
           "explain " + kGpt2 + " --dot out",
           "opt " + kGpt2 + " -o out",
           "run " + kGpt2 + " --tokens 1,2,3,4,5,6,7,8 --device cpu --out out",
       }) {
    const TemporaryDirectory folder;
    // Messages go through a pipe, which has no limit.
    const ProgramRun run = run_shell(fmt::format(
        "export SINTER_CACHE_DIR={0}.cache; mkdir {0}/here; cd {0}/here; "
        "(ulimit -f 1; \"$SINTER\" {1} 2>&1; echo \"code $?\") | cat; ls -A; rm -rf {0}.cache",
        folder.path(), command));
    CAPTURE(command);
    CAPTURE(run.out);
    CHECK(run.out.find("cannot write: File too large") != std::string::npos);
    CHECK(run.out.ends_with("code 4\n"));  // ls shows nothing
  }
}

TEST_CASE("a result that reaches the limit of its file is an error") {
  const TemporaryDirectory folder;
  const ProgramRun run = run_shell(fmt::format(
      "(ulimit -f 1; \"$SINTER\" explain {} --json 2>&1 >{}/out; echo \"code $?\") | cat", kGpt2,
      folder.path()));
  CHECK(run.out ==
        "sinter: standard output: cannot write: File too large; check where it leads and the space "
        "there\ncode 4\n");
}

}  // namespace
}  // namespace sinter::file_limit_test
