// The numbers of constraints, C1 .., as the sources tell them: each is listed once, beside its
// meaning, stands in an error, and has a test that is named after it.
#include <doctest/doctest.h>
#include <llvm/ADT/STLExtras.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

namespace sinter::constraints_test {
namespace {

const std::filesystem::path kRoot = std::filesystem::path(SINTER_TESTS_DIR).parent_path();

/// The texts of the sources below a folder.
std::vector<std::string> source_texts(const std::filesystem::path& folder) {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string extension = entry.path().extension();
    if (extension != ".cpp" && extension != ".h") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

/// The numbers that the pattern captures in the texts, one for each match.
std::multiset<int> numbers(const std::vector<std::string>& texts, const std::string& pattern) {
  const std::regex regex(pattern);
  std::multiset<int> found;
  for (const std::string& text : texts)
    for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
      found.insert(std::stoi((*at)[1]));
  return found;
}

std::set<int> distinct(const std::multiset<int>& numbers) {
  return {numbers.begin(), numbers.end()};
}

}  // namespace

TEST_CASE("every constraint is listed once, named by an error and tested") {
  std::vector<std::string> rules;
  for (const char* folder : {"ir", "kernels"})
    llvm::append_range(rules, source_texts(kRoot / folder));
  const auto listed = numbers(rules, R"(\n//   C([0-9]+) )");
  CHECK(!listed.empty());
  for (int number : listed)
    CHECK_MESSAGE(listed.count(number) == 1, "C", number, " is listed twice");

  // op.reject(7, ...), and messages that are written out.
  auto rejected = numbers(rules, R"(\breject\(\s*([0-9]+),)");
  rejected.merge(numbers(rules, R"(\(C([0-9]+)\))"));
  const auto tests = source_texts(SINTER_TESTS_DIR);
  const auto named = numbers(tests, R"rx(\nTEST_CASE\("C([0-9]+) )rx");
  const auto tested = numbers(tests, R"(\brejects\(\s*([0-9]+),)");
  for (int number : distinct(listed)) {
    CHECK_MESSAGE(rejected.contains(number), "no error names C", number);
    CHECK_MESSAGE(named.contains(number), "no test is named after C", number);
    CHECK_MESSAGE(tested.contains(number), "no test breaks C", number);
  }
  for (int number : distinct(rejected))
    CHECK_MESSAGE(listed.contains(number), "no list has C", number);
}

}  // namespace sinter::constraints_test
