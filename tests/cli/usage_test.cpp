// Exit codes, and errors of one line that say what to do.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/golden.h"
#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter {
namespace {

void check_error(const std::vector<std::string>& arguments, int code, const std::string& part) {
  const ProgramRun run = run_program(arguments);
  CAPTURE(fmt::format("{}", fmt::join(arguments, " ")));
  CAPTURE(run.err);
  CHECK(run.code == code);
  CHECK(run.out == "");
  CHECK(run.err.starts_with("sinter: "));
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find(part) != std::string::npos);
}

TEST_CASE("usage errors are one line and exit 2") {
  check_error({}, 2, "sinter --help");
  check_error({"no-such-command"}, 2, "sinter --help");
  check_error({"compile"}, 2, "MODEL is required; see `sinter compile --help`");
  check_error({"inspect", kGpt2, "--no-such-option"}, 2, "--no-such-option");
  check_error({"inspect", kGpt2, "--dtype", "f64"}, 2, "give fp32, fp16 or bf16");
  check_error({"inspect", kGpt2, "--arch", "sm_1"}, 2, "choose one of sm_80");
  check_error({"explain", kGpt2, "--numerics", "quick"}, 2, "give strict or fast");
  check_error({"explain", kGpt2, "--phase", "nothing"}, 2, "the module has prefill, decode");
  check_error({"explain", kGpt2, "--require", "l0.res1"}, 2, "two names with a comma between");
  check_error({"explain", kGpt2, "--stop-after", "-3"}, 2, "--stop-after");
  check_error({"explain", kGpt2, "--why", "l0.norm", "l0.res1"}, 2, "near it: l0.norm1");
  check_error({"explain", kGpt2, "--forbid", "l0.res1,nothing"}, 2,
              "no value is called \"nothing\"");
}

TEST_CASE("a required fusion that is impossible exits 3 with its path") {
  check_error({"explain", kGpt2, "--require", "l0.norm1,l0.res1"}, 3,
              "l0.attn → l0.attn_out → l0.res1");
}

TEST_CASE("a GPU that is not there exits 5; auto takes the CPU and says why") {
  const TemporaryDirectory folder;
  write_whole(folder.path() + "/tokens", "1, 5, 7 9\n3\n");
  const std::vector<std::string> hidden = {"CUDA_VISIBLE_DEVICES=-1"};
  const std::vector<std::vector<std::string>> commands = {
      {"run", kGpt2, "--tokens", "1,2"},
      {"generate", kGpt2, "--tokens", "1,2", "-n", "2"},
      {"verify", kGpt2, "--dtype", "fp32", "--steps", "2"},
      {"embed", SINTER_TESTS_DIR "/golden/bert_post_ln", "--tokens", "1,2"},
      {"ppl", kGpt2, "--tokens", folder.path() + "/tokens"}};
  for (std::vector<std::string> command : commands) {
    CAPTURE(command[0]);
    for (const char* device : {"cuda", "cuda:1"}) {
      std::vector<std::string> asked = command;
      asked.insert(asked.end(), {"--device", device});
      const ProgramRun run = run_program(asked, hidden);
      CAPTURE(run.err);
      CHECK(run.code == 5);
      CHECK(run.out == "");
      CHECK(run.err.starts_with("sinter: "));
      CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
    }
    command.insert(command.end(), {"--device", "auto", "-v"});
    const ProgramRun run = run_program(command, hidden);
    CAPTURE(run.err);
    CHECK(run.code == 0);
    CHECK(run.err.find("device cpu: ") != std::string::npos);
  }
  check_error({"run", kGpt2, "--tokens", "1", "--device", "gpu"}, 2,
              "give auto, cpu, cuda or cuda:N");
}

TEST_CASE("bad input exits 4") {
  const TemporaryDirectory folder;
  check_error({"inspect", folder.path() + "/absent.json"}, 4, "absent.json");
  check_error({"inspect", folder.path()}, 4, "config.json");
  write_whole(folder.path() + "/broken.sir", "module @m {\n  entry @e( -> {\n");
  check_error({"compile", folder.path() + "/broken.sir"}, 4, "broken.sir:2:");
}

TEST_CASE("help and version are results") {
  const ProgramRun version = run_program({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("sinter "));
  CHECK(version.err == "");
  for (const char* command :
       {"inspect", "compile", "explain", "opt", "tokenize", "devices", "cache"}) {
    CAPTURE(command);
    CHECK(run_program({"--help"}).out.find(fmt::format("\n  {} ", command)) != std::string::npos);
    const ProgramRun help = run_program({command, "--help"});
    CHECK(help.code == 0);
    CHECK(help.out.find(fmt::format("Usage: sinter {}", command)) != std::string::npos);
  }
}

TEST_CASE("a reader that goes away is no error, a full disk is one") {
  const ProgramRun gone = run_shell(
      fmt::format("\"$SINTER\" explain --json {} | true; echo ${{PIPESTATUS[0]}}", kGpt2));
  CHECK(gone.out == "0\n");
  CHECK(gone.err == "");
  const ProgramRun full = run_shell(fmt::format("\"$SINTER\" inspect {} > /dev/full", kGpt2));
  CHECK(full.code == 4);
  CHECK(full.err.find("cannot write") != std::string::npos);
}

TEST_CASE("an interrupt exits 130") {
  // The ledger is longer than a pipe holds, and nobody reads it: the program waits.
  const TemporaryDirectory folder;
  const ProgramRun run = run_shell(
      fmt::format("set -m; mkfifo {0}/pipe; sleep 60 < {0}/pipe & "
                  "\"$SINTER\" explain --json " SINTER_SAMPLES_DIR "/llama-2-7b.json > {0}/pipe & "
                  "sleep 1; kill -INT %2; wait %2; echo $?; kill %1",
                  folder.path()));
  CHECK(run.out == "130\n");
}

TEST_CASE("the cache is shown and cleared") {
  const TemporaryDirectory folder;
  const std::vector<std::string> environment = {"SINTER_CACHE_DIR=" + folder.path()};
  const ProgramRun status = run_program({"cache", "status"}, environment);
  CHECK(status.code == 0);
  CHECK(status.out == folder.path() + ": 0 kernels, 0 B\n");
  CHECK(run_program({"cache", "clear"}, environment).code == 0);
  CHECK(run_program({"devices"}).out.find("sm_90a") != std::string::npos);
}

}  // namespace
}  // namespace sinter
