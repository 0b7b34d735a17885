// Every file of tests/passes/cases, and that a wrong expectation is found.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "passes/text_test.h"

namespace sinter::test {
namespace {

TEST_CASE("cases") {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(SINTER_TESTS_DIR "/passes/cases"))
    if (file.path().extension() == ".txt") paths.push_back(file.path().string());
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() > 20);
  for (const std::string& path : paths) check_case_file(path);
}

constexpr const char* kSmall = R"(An add and its user.
input:
module @m {
  entry @f(%x: f32[4, 64]) -> (%b) {
    %a = add %x, %x : f32[4, 64]
    %b = mul %a, %a : f32[4, 64]
  }
}
why a b:
  convexity.path
)";

TEST_CASE("a wrong expectation is replaced by today's answer and shown") {
  const CaseResult result = run_case(kSmall, "small");
  CHECK(result.failure == "");
  CHECK(result.text.ends_with("why a b:\n  fused\n"));
  CHECK(line_difference(kSmall, result.text) == "  why a b:\n-   convexity.path\n+   fused\n");
}

TEST_CASE("a right expectation stays as it is") {
  const std::string once = run_case(kSmall, "small").text;
  CHECK(run_case(once, "small").text == once);
}

TEST_CASE("an error that no expectation names is a failure") {
  CHECK(run_case("input:\nmodule @m {\n  nonsense\n}\n", "small").failure != "");
  CHECK(run_case(std::string(kSmall) + "why a nowhere:\n", "small").failure ==
        "no value is called nowhere");
}

}  // namespace
}  // namespace sinter::test
