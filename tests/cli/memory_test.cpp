// Memory that runs out: one line that says how much was asked for, and exit code 6.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

/// In an address space of so many MiB. Libraries may hang where they find none as they are loaded.
ProgramRun limited(int mebibytes, const std::string& arguments) {
  return run_shell(
      fmt::format("ulimit -v {}; timeout 60 \"$SINTER\" {}", mebibytes * 1024, arguments));
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
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/chain.sir";
  constexpr int kOps = 60000;
  std::string ops = "    %v0 = neg %x : f32[4, 8]\n";
  for (int i = 1; i <= kOps; ++i) ops += fmt::format("    %v{} = exp %v{} : f32[4, 8]\n", i, i - 1);
  write_whole(
      path,
      fmt::format("module @m {{\n  entry @f(%x: f32[4, 8]) -> (%v{}) {{\n{}  }}\n}}\n", kOps, ops));
  int least = 256;  // with which the program starts
  while (limited(least, "--version").code != 0) least += 64;
  int without_memory = 0, with_bytes = 0, code = 6;
  for (int more = 0; code != 0 && more <= 2048; more += 24) {
    const ProgramRun run = limited(least + more, "explain " + path);
    code = run.code;
    CAPTURE(more);
    CAPTURE(run.err);
    if (code == 0) break;
    ++without_memory;
    CHECK(code == 6);
    CHECK(run.out.empty());
    CHECK(run.err.starts_with("sinter: out of memory: "));
    // LLVM's vectors tell no number of bytes.
    const bool says_bytes = run.err.find(" bytes were asked for; ") != std::string::npos;
    with_bytes += says_bytes ? 1 : 0;
    CHECK((says_bytes || run.err.starts_with("sinter: out of memory: Allocation failed; ")));
    CHECK(one_line(run.err));
  }
  CHECK(code == 0);
  CHECK(without_memory > 0);
  CHECK(with_bytes > 0);
}

}  // namespace
}  // namespace sinter
