// Passes by name: `sinter opt` on modules, on the text cases of the passes and on standard input.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/program.h"
#include "runtime/temporary_directory.h"

namespace sinter::opt_test {
namespace {

constexpr const char* kOptimized = R"(module @m {
  entry @f(%x: f32[4, 6]) -> (%x, %b) {
    %same = reshape %x : f32[4, 6]
    %b = exp %same : f32[4, 6]
  }
}
)";
constexpr const char* kCanonical = R"(module @m {
  entry @f(%x: f32[4, 6]) -> (%x, %b) {
    %b = exp %x : f32[4, 6]
  }
}
)";
constexpr const char* kMaterialized = R"(module @m {
  entry @f(%x: f32[4, 6]) -> (%x.out, %b) {
    %b = exp %x : f32[4, 6]
    %x.out = copy %x : f32[4, 6]
  }
}
)";

class ModuleFile : public TemporaryDirectory {
 public:
  explicit ModuleFile(const std::string& text = kOptimized) { write_whole(module, text); }
  const std::string module = path() + "/m.sir";
};

std::string opt_text(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "opt");
  const ProgramRun run = run_program(arguments);
  CHECK(run.code == 0);
  CHECK((run.err == "" || run.err.starts_with("sinter: module → ")));
  return run.out;
}

void check_one_line(const ProgramRun& run, int code, const std::string& part) {
  CAPTURE(run.err);
  CHECK(run.code == code);
  CHECK(run.out == "");
  CHECK(std::count(run.err.begin(), run.err.end(), '\n') == 1);
  CHECK(run.err.find(part) != std::string::npos);
}

TEST_CASE("without --pass all passes run, with it those that it names, in its order") {
  const ModuleFile file;
  CHECK(opt_text({file.module}) == kMaterialized);
  CHECK(opt_text({file.module, "--pass", "canonicalize"}) == kCanonical);
  CHECK(opt_text({file.module, "--pass", "merge_linears"}) == kOptimized);
  CHECK(opt_text({"--pass", "canonicalize,materialize", file.module}) == kMaterialized);
  CHECK(opt_text({"--pass", "canonicalize", "--pass", "materialize", file.module}) ==
        kMaterialized);
}

TEST_CASE("passes that run one by one leave what the whole pipeline leaves") {
  const ModuleFile file;
  const std::string llama = SINTER_TESTS_DIR "/golden/llama";
  std::string text = opt_text({llama, "--pass", "canonicalize"});
  for (const char* pass :
       {"label_sums", "padded_formulas", "recognize_attention", "fold_positions", "attention_masks",
        "shared_heads", "merge_linears", "unit_axes", "choose_kernels", "expand_attention",
        "moved_views", "cleanup", "materialize", "recompute_parts", "block_sums", "run_sums",
        "column_operands", "placed_parts", "check_rows"}) {
    write_whole(file.module, text);
    text = opt_text({file.module, "--pass", pass});
  }
  CHECK(text == opt_text({llama}));
}

TEST_CASE("a text case of the passes is a module, and opt shows what the case expects") {
  const std::string path = SINTER_TESTS_DIR "/passes/cases/materialize_outputs.sir";
  std::string expected = "// after materialize:\n";
  std::istringstream lines(opt_text(
      {path, "--pass", "canonicalize,merge_linears,choose_kernels,expand_attention,materialize"}));
  for (std::string line; std::getline(lines, line);) expected += "//   " + line + "\n";
  CHECK(read_whole(path).find(expected) != std::string::npos);
}

TEST_CASE("with --device-inputs, the text is that of a case with device inputs") {
  const std::string path = SINTER_TESTS_DIR "/passes/cases/check_rows_of_device_inputs.sir";
  std::string expected = "// after check_rows:\n";
  std::istringstream lines(opt_text({path, "--device-inputs"}));
  for (std::string line; std::getline(lines, line);) expected += "//   " + line + "\n";
  CHECK(read_whole(path).find(expected) != std::string::npos);
  CHECK(opt_text({path}).find("checked") == std::string::npos);
}

TEST_CASE("- is standard input") {
  const ModuleFile file;
  const ProgramRun run =
      run_shell(fmt::format("\"$SINTER\" opt --pass canonicalize - < {}", file.module));
  CHECK(run.out == kCanonical);
  CHECK(run.code == 0);
  check_one_line(run_shell("echo 'module @m { x' | \"$SINTER\" opt -"), 4, "<stdin>:1:13: ");
}

TEST_CASE("-o writes the module as a whole or not at all") {
  const ModuleFile file;
  const std::string output = file.path() + "/after.sir";
  CHECK(opt_text({file.module, "-o", output}) == "");
  CHECK(read_whole(output) == kMaterialized);
  write_whole(file.module, "module @m {\n");
  check_one_line(run_program({"opt", file.module, "-o", output}), 4, "m.sir:2:1");
  CHECK(read_whole(output) == kMaterialized);
  check_one_line(run_program({"opt", file.path() + "/absent.sir"}), 4, "absent.sir");
}

TEST_CASE("a pass that does not exist and a module that does not verify are told") {
  const ModuleFile file;
  check_one_line(
      run_program({"opt", file.module, "--pass", "canonicalise"}), 2,
      "no pass is called \"canonicalise\"; the passes are canonicalize, label_sums, "
      "padded_formulas, recognize_attention, fold_positions, attention_masks, shared_heads, "
      "merge_linears, unit_axes, entry_variants, ");
  write_whole(file.module,
              "module @m {\n  entry @f(%x: f32[4]) -> (%a) {\n"
              "    %a = exp %x : f32[5]\n  }\n}\n");
  check_one_line(run_program({"opt", file.module}), 4, "m.sir:3:5: ");
}

}  // namespace
}  // namespace sinter::opt_test
