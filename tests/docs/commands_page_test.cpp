// docs/commands.md is made here, from the program's own help.
#include <doctest/doctest.h>

#include "cli/program.h"
#include "support/check_text.h"

namespace sinter::commands_page_test {
namespace {

std::string help_of(const std::string& command) {
  const ProgramRun run = run_shell("\"$SINTER\" " + command + " --help");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  return run.out;
}

/// The lines of `sinter --help` from the first group of commands to the end of the last.
std::string groups_of(const std::string& help) {
  const size_t begin = help.find("\n\n", help.find("--help")) + 2, end = help.find("\n\n\n", begin);
  REQUIRE(end != std::string::npos);
  return help.substr(begin, end - begin);
}

std::string without_blank_ends(std::string text) {
  text.erase(0, text.find_first_not_of('\n'));
  text.erase(text.find_last_not_of('\n') + 1);
  return text;
}

TEST_CASE("docs/commands.md is made from the help") {
  std::string page =
      "# Commands\n\n"
      "The commands of `sinter`, as `sinter --help` and `sinter COMMAND --help` print them. This "
      "page is made by `tests/docs/commands_page_test.cpp`.\n\n"
      "```\n" +
      groups_of(help_of("")) + "\n```\n";
  for (const std::string& command : all_commands())
    page +=
        "\n## sinter " + command + "\n\n```\n" + without_blank_ends(help_of(command)) + "\n```\n";
  test::check_text_file(page, "../docs/commands.md", "commands_page");
}

}  // namespace
}  // namespace sinter::commands_page_test
