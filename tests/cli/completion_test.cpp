// sinter completion: the scripts name every command and every option.
#include <doctest/doctest.h>

#include "cli/program.h"

namespace sinter::completion_test {
namespace {

TEST_CASE("completion scripts know all commands and options") {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const ProgramRun script = run_program({"completion", shell});
    REQUIRE(script.code == 0);
    for (const std::string& command : all_commands()) {
      CAPTURE(command);
      CHECK(script.out.find(command.substr(command.rfind(' ') + 1)) != std::string::npos);
    }
    for (const std::string& option : options_of("generate")) {
      CAPTURE(option);
      const std::string name = shell == std::string("fish") ? option.substr(2) : option;
      CHECK(script.out.find(name) != std::string::npos);
    }
  }
}

/// The completions in an empty folder: names of files are completions too.
std::string completed(const std::string& line) {
  const TemporaryDirectory folder;
  return run_shell("cd '" + folder.path() +
                   "' && eval \"$(\"$SINTER\" completion bash)\"; COMP_WORDS=(" + line +
                   "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _sinter; echo \"${COMPREPLY[*]}\"")
      .out;
}

TEST_CASE("bash completes commands, their own options and commands below them") {
  CHECK(completed("sinter gen") == "generate\n");
  CHECK(completed("sinter generate --temp") == "--temperature\n");
  CHECK(completed("sinter generate model --top-") == "--top-k --top-p\n");
  CHECK(completed("sinter cache cl") == "clear\n");
  CHECK(completed("sinter inspect --temp") == "\n");
}

}  // namespace
}  // namespace sinter::completion_test
