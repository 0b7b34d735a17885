// Memory that runs out: one line that says what found none, and exit code 6.
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

/// The two lines that there are: of operator new, and of LLVM's containers.
bool is_out_of_memory(const std::string& text) {
  constexpr std::string_view kBefore = "sinter: out of memory: ",
                             kAfter = "; use smaller sizes, or more memory\n";
  if (!text.starts_with(kBefore) || !text.ends_with(kAfter)) return false;
  const std::string what =
      text.substr(kBefore.size(), text.size() - kBefore.size() - kAfter.size());
  if (what == "a container found no room to grow") return true;
  const size_t digits = what.find_first_not_of("0123456789");
  return digits > 0 && digits != std::string::npos &&
         what.substr(digits) == " bytes were asked for";
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
  int without_memory = 0, code = 6;
  for (int more = 0; code != 0 && more <= 2048; more += 24) {
    const ProgramRun run = limited(least + more, "explain " + path);
    code = run.code;
    CAPTURE(more);
    CAPTURE(run.err);
    if (code == 0) break;
    ++without_memory;
    CHECK(code == 6);
    CHECK(run.out.empty());
    CHECK(is_out_of_memory(run.err));
  }
  CHECK(code == 0);
  CHECK(without_memory > 0);
}

}  // namespace
}  // namespace sinter
