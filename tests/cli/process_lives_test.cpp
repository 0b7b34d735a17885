// Compilations that are interrupted, terminated, killed, or run two at a time: each leaves a whole
// plan or none, says by its exit code what happened, and leaves nothing that the next one does not
// collect. SINTER_TRIES sets how many processes of each kind are ended (3).
#include <doctest/doctest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

#include "cli/golden.h"
#include "cli/program.h"
#include "ir/error.h"

namespace sinter::process_lives_test {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

/// Three kernels, which take most of a second to compile.
constexpr const char* kLiving = R"(module @lives {
  symbol N in [1, 64]
  weight %w : f32[256, 256] = file {tensor = "w"}
  weight %g : f32[256] = file {tensor = "g"}
  entry @f(%x: f32[N, 256], %r: f32[N, 256]) -> (%probs) {
    %sum = add %x, %r : f32[N, 256]
    %norm = rms_norm %sum, %g {eps = 0x1p-10} : f32[N, 256]
    %up = linear %norm, %w : f32[N, 256]
    %act = gelu_tanh %up : f32[N, 256]
    %down = linear %act, %w : f32[N, 256]
    %probs = softmax %down : f32[N, 256]
  }
}
)";

int tries() {
  const char* text = std::getenv("SINTER_TRIES");
  return text != nullptr ? std::max(1, std::atoi(text)) : 3;
}

/// A compilation with a kernel cache and a place of its own.
struct Compilation {
  TemporaryDirectory folder;
  std::string module = folder.path() + "/module.sir", plan = folder.path() + "/plan";
  std::vector<std::string> command = {"compile", module, "-o", plan};
  std::vector<std::string> environment = {"SINTER_CACHE_DIR=" + folder.path() + "/cache"};

  Compilation() { write_whole(module, kLiving); }

  ProgramRun run() const { return run_program(command, environment); }
  /// The names in the folder beside the module, the plan and the cache.
  std::vector<std::string> others() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path()))
      if (const std::string name = entry.path().filename();
          name != "module.sir" && name != "plan" && name != "cache")
        names.push_back(name);
    return names;
  }
};

/// The plan as it must be, and how long it takes to make with an empty cache. The first
/// compilation reads the program and its libraries from the disk, the second one is timed.
struct Whole {
  std::vector<std::pair<std::string, std::string>> contents;
  double seconds = 0;
  Whole() {
    for (int i = 0; i < 2; ++i) {
      const Compilation one;
      const auto begin = Clock::now();
      const ProgramRun run = one.run();
      seconds = Seconds(Clock::now() - begin).count();
      REQUIRE_MESSAGE(run.code == 0, run.err);
      contents = folder_contents(one.plan);
    }
  }
};

const Whole& whole() {
  static const Whole made;
  return made;
}

/// Starts the compilation, sends the signal after `share` of the time that it takes, and returns
/// how it ended; a compilation that was done before begins again, and has half as long.
/// `latency`: seconds from the signal to the end.
ProgramRun end_early(const Compilation& one, double share, int signal, double& latency) {
  for (double seconds = share * whole().seconds;; seconds /= 2) {
    RunningProgram program(one.command, one.environment);
    std::this_thread::sleep_for(Seconds(seconds));
    const auto sent = Clock::now();
    program.send(signal);
    ProgramRun run = program.wait();
    latency = Seconds(Clock::now() - sent).count();
    if (run.code != 0) return run;
    CHECK(folder_contents(one.plan) == whole().contents);
    REQUIRE(seconds > 0.001);
    fs::remove_all(one.folder.path() + "/cache");
  }
}

/// Nothing that a killed compilation left keeps the next one from its work; it collects it.
void check_next(const Compilation& one) {
  const ProgramRun next = one.run();
  CAPTURE(next.err);
  CHECK(next.code == 0);
  CHECK(folder_contents(one.plan) == whole().contents);
  CHECK(one.others().empty());
}

TEST_CASE("an interrupt ends a compilation with its exit code, at any moment") {
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), std::pair(SIGTERM, 143)}) {
    double longest = 0;
    for (int i = 0; i < tries(); ++i) {
      const Compilation one;
      double latency = 0;
      const ProgramRun run = end_early(one, (i + 0.5) / tries(), signal, latency);
      longest = std::max(longest, latency);
      CAPTURE(i);
      CAPTURE(run.err);
      CHECK(run.code == code);
      if (fs::exists(one.plan)) CHECK(folder_contents(one.plan) == whole().contents);
      CHECK(one.others().empty());
      if (i % 3 == 0) check_next(one);
    }
    MESSAGE("signal " << signal << ": the slowest of " << tries() << " ended " << longest
                      << " s after it");
  }
}

TEST_CASE("a killed compilation leaves a whole plan or none") {
  for (int i = 0; i < tries(); ++i) {
    const Compilation one;
    // Every second one replaces a plan.
    std::vector<std::pair<std::string, std::string>> before;
    if (i % 2 == 1) {
      REQUIRE(
          run_program({"compile", one.module, "--no-fuse", "-o", one.plan}, one.environment).code ==
          0);
      before = folder_contents(one.plan);
    }
    double latency = 0;
    const ProgramRun run = end_early(one, (i + 0.5) / tries(), SIGKILL, latency);
    CAPTURE(i);
    CHECK(run.code == 128 + SIGKILL);
    const bool there = fs::exists(one.plan);
    CHECK((there || before.empty()));
    if (there) {
      const auto now = folder_contents(one.plan);
      CHECK((now == whole().contents || now == before));
    }
    check_next(one);
  }
}

TEST_CASE("a killed command leaves no part of a file") {
  for (int i = 0; i < tries(); ++i) {
    const TemporaryDirectory folder;
    {
      RunningProgram program({"explain", kGpt2, "--html", folder.path() + "/ledger.html"});
      std::this_thread::sleep_for(Seconds(0.004 * i));
      program.send(SIGKILL);
      program.wait();
    }
    const auto files = folder_contents(folder.path());
    CHECK(files.size() <= 1);
    for (const auto& [name, text] : files) {
      CHECK(name == "ledger.html");
      CHECK(text.ends_with("</html>\n"));
    }
  }
}

TEST_CASE("two compilations to one folder: both succeed, and the plan is whole") {
  for (int i = 0; i < std::min(tries(), 20); ++i) {
    const Compilation one;
    RunningProgram a(one.command, one.environment), b(one.command, one.environment);
    const ProgramRun first = a.wait(), second = b.wait();
    CAPTURE(first.err);
    CAPTURE(second.err);
    CHECK(first.code == 0);
    CHECK(second.code == 0);
    CHECK(folder_contents(one.plan) == whole().contents);
    CHECK(one.others().empty());
  }
}

TEST_CASE("many compilations of two modules to one folder, and readers: each finds a whole plan") {
  const Compilation one;
  const std::string other = one.folder.path() + "/other.sir";
  write_whole(other, R"(module @other {
  entry @f(%x: f32[4, 8]) -> (%y) {
    %y = exp %x : f32[4, 8]
  }
}
)");
  const auto compile = [&](const std::string& module, const std::string& plan) {
    return std::vector<std::string>{"compile", module, "--no-machine-code", "-o", plan};
  };
  std::vector<std::vector<std::pair<std::string, std::string>>> wholes;
  for (const std::string& module : {one.module, other}) {
    REQUIRE(run_program(compile(module, one.plan)).code == 0);
    wholes.push_back(folder_contents(one.plan));
  }
  constexpr int kAtATime = 8, kReaders = 2;
  for (int i = 0; i < tries(); ++i) {
    std::vector<std::unique_ptr<RunningProgram>> programs;
    for (int k = 0; k < kAtATime; ++k)
      programs.push_back(
          std::make_unique<RunningProgram>(compile(k % 2 ? other : one.module, one.plan)));
    for (int k = 0; k < kReaders; ++k)
      programs.push_back(
          std::make_unique<RunningProgram>(std::vector<std::string>{"inspect", one.plan}));
    for (const auto& program : programs) {
      const ProgramRun run = program->wait();
      CAPTURE(run.err);
      CHECK(run.code == 0);
    }
    const auto contents = folder_contents(one.plan);
    CHECK((contents == wholes[0] || contents == wholes[1]));
    CHECK(one.others() == std::vector<std::string>{"other.sir"});
  }
}

TEST_CASE("started where interrupts are ignored, it ignores them") {
  const Compilation one;
  const ProgramRun run = run_shell(fmt::format(
      "trap '' INT; export {}; \"$SINTER\" compile {} -o {} >/dev/null & sleep 0.05; kill -INT $!; "
      "wait $!; echo \"code $?\"",
      one.environment[0], one.module, one.plan));
  CHECK(run.out.ends_with("code 0\n"));
  CHECK(folder_contents(one.plan) == whole().contents);
}

}  // namespace
}  // namespace sinter::process_lives_test
