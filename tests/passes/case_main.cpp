// passes_case FILE...: runs cases (case_text.h). A case fails when an answer is not the one that
// stands in its file; with SINTER_BLESS=1 the file is written.
#include <cstdio>

#include "passes/case_run.h"
#include "support/expected_text.h"

namespace sinter::test {
namespace {

bool passes(const std::string& program, const std::string& path) {
  const std::string text = read_text(path);
  if (text.empty()) {
    std::printf("%s: no such case\n", path.c_str());
    return false;
  }
  const CaseResult result = run_case(text, path);
  const std::string fault =
      result.failure.empty() ? compare_text_file(result.text, path) : result.failure + "\n";
  if (fault.empty()) return true;
  std::printf("%s:\n%s%s", path.c_str(), fault.c_str(),
              case_commands(result, program, path).c_str());
  return false;
}

}  // namespace
}  // namespace sinter::test

int main(int argc, char** argv) {
  int failed = argc < 2;
  for (int i = 1; i < argc; ++i) failed |= !sinter::test::passes(argv[0], argv[i]);
  return failed;
}
