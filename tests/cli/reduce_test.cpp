// `sinter reduce`: the command that is asked, its limits, and the file that holds the best so far.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::reduce_test {
namespace {

constexpr const char* kModule = R"(module @m {
  symbol N in [1, 64]
  entry @f(%x: f32[N, 256]) -> (%c) {
    %a = exp %x : f32[N, 256]
    %b = tanh %a : f32[N, 256]
    %c = sqrt %b : f32[N, 256]
  }
}
)";
constexpr const char* kSmallest = R"(module @m {
  entry @f() -> (%b) {
    %x = constant {value = 0x0p+0} : f32[1, 1]
    %b = tanh %x : f32[1, 1]
  }
}
)";

class ModuleFolder : public TemporaryDirectory {
 public:
  ModuleFolder() { write_whole(module, kModule); }
  const std::string module = path() + "/m.sir", reduced = path() + "/small.sir";

  std::vector<std::string> command(const std::string& check) const {
    return {"reduce", module, "--check", check, "-o", reduced};
  }
};

}  // namespace

TEST_CASE("reduce: the path is the command's last argument, or stands for {}") {
  const ModuleFolder folder;
  for (const char* check : {"grep -q tanh", "cat {} | grep -q tanh"}) {
    CAPTURE(check);
    const ProgramRun run = run_program(folder.command(check));
    CHECK(run.code == 0);
    CHECK(run.out == kSmallest);
    CHECK(read_whole(folder.reduced) == kSmallest);
    CHECK(run.err.find("3 ops") != std::string::npos);
    CHECK(run.err.find("written to " + folder.reduced) != std::string::npos);
  }
  // Nothing but the two modules is left.
  CHECK(folder_contents(folder.path()).size() == 2);
}

TEST_CASE("reduce: a command that does not succeed on the module itself is refused") {
  const ModuleFolder folder;
  const ProgramRun run = run_program(folder.command("! grep -q tanh"));
  CHECK(run.code == 2);
  CHECK(run.err.find("exit status 1 on the module itself") != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(folder.reduced));
}

TEST_CASE("reduce: a check that takes too long has not succeeded, and what it started is killed") {
  const ModuleFolder folder;
  // Modules without exp wait for a process of their own.
  std::vector<std::string> command =
      folder.command("grep -q tanh {} && { grep -q exp {} || sh -c 'sleep 60; true'; }");
  for (const char* word : {"--timeout", "1", "--tries", "4"}) command.emplace_back(word);
  const ProgramRun run = run_program(command);
  CHECK(run.code == 0);
  CHECK(run.out.find("exp") != std::string::npos);
  CHECK(run.err.find("no end after 1 s") != std::string::npos);
}

TEST_CASE(
    "reduce: an interrupt leaves the smallest module so far, and a kill what the next run takes") {
  for (const int signal : {SIGINT, SIGKILL}) {
    CAPTURE(signal);
    const ModuleFolder folder;
    // The first check passes; the second one passes and waits, as do all later ones.
    RunningProgram running(folder.command("grep -q tanh {} && { test -e " + folder.path() +
                                          "/twice && sleep 60; test -e " + folder.path() +
                                          "/once && touch " + folder.path() + "/twice; touch " +
                                          folder.path() + "/once; }"));
    while (!std::filesystem::exists(folder.path() + "/twice"))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    running.send(signal);
    CHECK(running.wait().code == (signal == SIGINT ? 130 : 128 + SIGKILL));
    const std::string text = read_whole(folder.reduced);
    CHECK(text.find("tanh") != std::string::npos);
    CHECK(text.size() < std::string(kModule).size());
    if (signal == SIGKILL) CHECK(run_program(folder.command("grep -q tanh")).code == 0);
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      CHECK_MESSAGE(entry.path().extension() != ".tmp", entry.path().string());
  }
}

}  // namespace sinter::reduce_test
