// Compiled kernel text that is kept on disk: what is compiled again and what is not. A library that
// is taken from the folder leaves the folder's files as they are; one that is compiled writes one.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "shim/shim_compiler.h"
#include "shim/shim_module.h"

namespace sinter::shim_cache_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kText = R"(
#include "sinter/factor.cuh"
#ifndef kSummand
#define kSummand 0
#endif
extern "C" __global__ void scaled(const int* x, int* y) {
  y[threadIdx.x] = x[threadIdx.x] * factor() + kSummand;
}
)";
constexpr const char* kHeader = R"(
#pragma once
__device__ __forceinline__ int factor() { return 3; }
)";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  return text.replace(text.find(what), what.size(), by);
}

/// A variable of the environment, which gets its value back.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

/// The kernel's result for 7, or 0 if it does not compile or run.
int result_of(const std::string& text = kText, const std::string& header = kHeader) {
  const EmbeddedHeader headers[] = {{"sinter/factor.cuh", header}};
  const auto module = ShimModule::compile({{"scaled", text}}, headers);
  if (!module) return 0;
  int x = 7, y = 0;
  void *in = &x, *out = &y;
  if (!module->launch("scaled", {{1, 1, 1}, {1, 1, 1}, 0}, {&in, &out})) return 0;
  return y;
}

/// The folder's files and what is in them.
std::map<std::string, std::string> files_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none))
    files[entry.path().filename().string()] = read_file(entry.path());
  return files;
}

struct KeptText {
  ScratchFolder folder;
  fs::path path = folder.path() / "kept";
  Variable kept{"SINTER_SHIM_CACHE", path.string()};
};

}  // namespace

TEST_CASE("kernel text is compiled once") {
  const KeptText kept;
  CHECK(result_of() == 21);
  const auto files = files_of(kept.path);
  CHECK(files.size() == 1);
  CHECK(result_of() == 21);
  CHECK(files_of(kept.path) == files);
}

TEST_CASE("a changed text, header or flag is compiled again") {
  const KeptText kept;
  REQUIRE(result_of() == 21);
  CHECK(result_of(replaced(kText, "* factor()", "- factor()")) == 4);
  CHECK(files_of(kept.path).size() == 2);
  CHECK(result_of(kText, replaced(kHeader, "return 3", "return 5")) == 35);
  CHECK(files_of(kept.path).size() == 3);
  {
    const Variable flags("SINTER_SHIM_FLAGS", "-DkSummand=2");
    CHECK(result_of() == 23);
    CHECK(files_of(kept.path).size() == 4);
  }
  const auto files = files_of(kept.path);
  CHECK(result_of() == 21);  // what was before is still there
  CHECK(files_of(kept.path) == files);
}

TEST_CASE("a damaged library is compiled again") {
  const KeptText kept;
  REQUIRE(result_of() == 21);
  const auto files = files_of(kept.path);
  REQUIRE(files.size() == 1);
  const auto& [name, whole] = *files.begin();
  std::string flipped = whole;
  flipped[flipped.size() / 2] ^= 1;
  for (const std::string& damaged : {flipped, whole.substr(0, whole.size() - 1), std::string()}) {
    CAPTURE(damaged.size());
    write_file(kept.path / name, damaged);
    CHECK(result_of() == 21);
    const auto mended = files_of(kept.path);
    REQUIRE(mended.size() == 1);
    CHECK(mended.begin()->second != damaged);
    CHECK(result_of() == 21);
    CHECK(files_of(kept.path) == mended);
  }
}

TEST_CASE("processes that compile one text at once do not disturb each other") {
  const KeptText kept;
  const EmbeddedHeader headers[] = {{"sinter/factor.cuh", kHeader}};
  REQUIRE(ShimModule::prepare(headers).has_value());  // children leave no folders of their own
  pid_t children[3];
  for (pid_t& child : children) {
    child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(result_of() == 21 ? 0 : 1);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  const auto files = files_of(kept.path);
  CHECK(files.size() == 1);  // and nothing half written beside it
  CHECK(result_of() == 21);
  CHECK(files_of(kept.path) == files);
}

}  // namespace sinter::shim_cache_test
