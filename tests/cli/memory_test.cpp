// Memory that runs out: one line that says what found none, and exit code 6.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::memory_test {
namespace {

/// Runs it in an address space of that number of MiB.
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

TEST_CASE("a library that the address space has no room for is not loaded") {
  constexpr int kLittle = 146, kEnough = 512;
  const TemporaryDirectory folder;
  const std::string model = std::string(SINTER_SAMPLES_DIR) + "/tiny-llama",
                    products = folder.path() + "/products.sir", plan = folder.path() + "/plan";
  write_whole(products, R"(module @products {
  entry @f(%x: f32[16, 8], %y: f32[8, 8]) -> (%z) {
    %z = linear %x, %y : f32[16, 8]
  }
}
)");
  for (const std::string& command :
       {std::string("--version"), "inspect " + model,
        "compile " + model + " --no-machine-code -o " + plan, "inspect " + plan}) {
    const ProgramRun run = limited(kLittle, command);
    CAPTURE(command);
    CAPTURE(run.err);
    CHECK(run.code == 0);
  }
  const std::string multiply = "run " + products + " --device cpu --random-inputs 1";
  const ProgramRun none = limited(kLittle, multiply);
  CAPTURE(none.err);
  CHECK(none.code == 6);
  CHECK(none.err.find("OpenBLAS, which computes products of matrices, takes 200 MiB") !=
        std::string::npos);
  CHECK(one_line(none.err));
  const ProgramRun some = limited(kEnough, multiply);
  CAPTURE(some.err);
  CHECK(some.code == 0);
  // Machine code takes NVRTC, which is not everywhere: without one no library is loaded.
  const ProgramRun compiled = run_shell(
      fmt::format("ulimit -v {}; SINTER_CACHE_DIR={}/cache timeout 60 \"$SINTER\" compile {} -o {}",
                  kLittle * 1024, folder.path(), model, plan));
  CAPTURE(compiled.err);
  CHECK((compiled.code == 0 || compiled.code == 6));
}

TEST_CASE("whatever the limit is, a command ends with its result or with one line") {
  const TemporaryDirectory folder;
  const std::string path = folder.path() + "/chain.sir";
  constexpr int kOps = 30000;
  std::string ops = "    %v0 = neg %x : f32[4, 8]\n";
  for (int i = 1; i <= kOps; ++i) ops += fmt::format("    %v{} = exp %v{} : f32[4, 8]\n", i, i - 1);
  write_whole(
      path,
      fmt::format("module @m {{\n  entry @f(%x: f32[4, 8]) -> (%v{}) {{\n{}  }}\n}}\n", kOps, ops));
  int least = 64;  // with which the program starts
  while (limited(least, "--version").code != 0) least += 64;
  int without_memory = 0, code = 6;
  for (int more = 0; code != 0 && more <= 1024; more += 12) {
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
}  // namespace sinter::memory_test
