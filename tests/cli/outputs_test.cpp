// Files and folders that commands write: no command replaces what it reads or what is foreign, and
// no end of a command leaves a part of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/program.h"

namespace sinter::outputs_test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModule = R"(module @m {
  weight %w : f32[4] = constant {value = 1.0}
  entry @f(%x: f32[2, 4]) -> (%y) {
    %a = exp %x : f32[2, 4]
    %y = mul %a, %w : f32[2, 4]
  }
}
)";

/// A module in a folder, called by other names, too.
class Inputs : public TemporaryDirectory {
 public:
  const std::string folder = path() + "/model", module = folder + "/model.sir",
                    link = path() + "/link.sir", same = path() + "/same.sir",
                    other = path() + "/other.sir";

  Inputs() {
    fs::create_directory(folder);
    write_whole(module, kModule);
    fs::create_symlink(module, link);
    fs::create_hard_link(module, same);
    write_whole(other, "another file");
  }
};

void check_refused(const ProgramRun& run, const std::string& part) {
  CAPTURE(run.err);
  CHECK((run.code == 2 || run.code == 4));
  CHECK(run.out == "");
  const std::string error = run.err.substr(run.err.rfind("sinter: "));  // notes may stand before it
  CHECK(std::count(error.begin(), error.end(), '\n') == 1);
  CHECK(error.find(part) != std::string::npos);
}

TEST_CASE("outputs: no command writes over a file that it reads, by any of its names") {
  const Inputs inputs;
  const std::string dotted = inputs.folder + "/../model/./model.sir";
  const auto commands = [&](const std::string& output) {
    return std::vector<std::vector<std::string>>{
        {"reduce", inputs.module, "--check", "true", "-o", output},
        {"opt", inputs.module, "-o", output},
        {"explain", inputs.folder, "--html", output},
        {"explain", inputs.module, "--dot", output},
        {"run", inputs.module, "--random-inputs", "1", "--device", "cpu", "--out", output}};
  };
  for (const std::string& output : {inputs.module, dotted, inputs.link, inputs.same})
    for (const auto& command : commands(output)) {
      CAPTURE(command[0]);
      CAPTURE(output);
      check_refused(run_program(command), "the command reads this file");
      CHECK(read_whole(inputs.module) == kModule);
      CHECK(fs::is_symlink(inputs.link));
    }
  // A file that it does not read is replaced.
  for (const auto& command : commands(inputs.other)) {
    CAPTURE(command[0]);
    write_whole(inputs.other, "another file");
    const ProgramRun run = run_program(command);
    CHECK_MESSAGE(run.code == 0, run.err);
    CHECK(read_whole(inputs.other) != "another file");
  }
  // The output that `reduce` has by default.
  CHECK(run_shell(fmt::format("cd {0}; cp {1} reduced.sir; \"$SINTER\" reduce reduced.sir --check "
                              "true; echo $?; cmp {1} reduced.sir",
                              inputs.path(), inputs.module))
            .out == "2\n");
}

TEST_CASE("outputs: a folder of foreign files, or with an input, is no output") {
  const Inputs inputs;
  const std::string plan = inputs.path() + "/plan", reproducer = inputs.path() + "/reproducer";
  const ProgramRun compiled = run_program({"compile", inputs.module, "-o", plan});
  REQUIRE_MESSAGE(compiled.code == 0, compiled.err);
  const auto contents = folder_contents(plan);
  const std::string part = plan + "/ir/00-input.sir";
  check_refused(run_program({"compile", part, "-o", plan + "/"}), "which the command reads");
  CHECK(folder_contents(plan) == contents);
  CHECK(run_program({"compile", inputs.module, "-o", plan}).code == 0);  // a plan replaces a plan
  fs::create_directory_symlink(inputs.folder, inputs.path() + "/linked");
  for (const std::string& folder : {inputs.folder, inputs.folder + "/", inputs.folder + "/../model",
                                    inputs.path(), inputs.path() + "/linked", plan, inputs.other}) {
    CAPTURE(folder);
    const std::string content = fs::is_directory(folder) ? "the folder holds" : "this is no folder";
    check_refused(run_program({"bisect", inputs.module, "-o", folder, "--device", "cpu"}), content);
    if (folder != plan)
      check_refused(run_program({"compile", inputs.module, "-o", folder}),
                    fs::is_directory(folder) ? "the folder holds" : content);
  }
  CHECK(folder_contents(inputs.folder).size() == 1);
  CHECK(read_whole(inputs.module) == kModule);
  CHECK(folder_contents(plan) == contents);
  // An earlier reproducer is replaced, unless it is the input.
  fs::create_directory(reproducer);
  write_whole(reproducer + "/model.sir", kModule);
  const auto bisect = [&](const std::string& module) {
    return run_program({"bisect", module, "-o", reproducer, "--device", "cpu", "--repeats", "1"});
  };
  check_refused(bisect(inputs.module), "the folder holds model.sir, which is no part");
  write_whole(reproducer + "/about.json", R"({"sinter": "0.1.0", "fails_alone": true})");
  CHECK(bisect(inputs.module).code == 0);
  check_refused(bisect(reproducer + "/model.sir"), "the folder holds model.sir, which the command");
}

TEST_CASE("outputs: a name is one word of the command lines that are printed") {
  const TemporaryDirectory place;
  const std::string module = place.path() + "/m.sir";
  write_whole(module, R"sir(module @m {
  entry @f(%x: f32[8, 64], %z: f32[8, 64]) -> (%b, %"d e") {
    %"b's $(c)" = softmax %x : f32[8, 64]
    %b = cumulative_sum %"b's $(c)" {axis = 0} : f32[8, 64]
    %p = cumulative_sum %z {axis = 0} : f32[8, 64]
    %q = cumulative_sum %p {axis = 0} : f32[8, 64]
    %"d e" = exp %q : f32[8, 64]
}
}
)sir");
  const ProgramRun why = run_program({"explain", module, "--why", "b's $(c)", "d e"});
  CHECK_MESSAGE(why.out.find("--require 'b'\\''s $(c),d e' it would") != std::string::npos,
                why.out);
  const ProgramRun required = run_program({"explain", module, "--require", "b's $(c),b"});
  CHECK_MESSAGE(required.err.find("--why 'b'\\''s $(c)' b`") != std::string::npos, required.err);
}

TEST_CASE("outputs: a command at a limit of descriptors leaves nothing") {
  const TemporaryDirectory place;
  size_t failed = 0;
  for (int files = 4; files < 9; ++files) {
    const ProgramRun run = run_shell(fmt::format(
        "cd {}; (ulimit -n {}; \"$SINTER\" quantize " SINTER_TESTS_DIR
        "/golden/mistral_window --to fp8 --no-text -q -o out 2>&1); echo $?; rm -rf out; ls -A",
        place.path(), files));
    CAPTURE(files);
    CAPTURE(run.out);
    CHECK(run.out.find(".tmp\n") == std::string::npos);
    failed += !run.out.ends_with("\n0\n");
  }
  CHECK(failed > 0);
}

}  // namespace
}  // namespace sinter::outputs_test
