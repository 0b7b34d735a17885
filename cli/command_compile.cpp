#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/compile/plan_summary.h"
#include "driver/plan_folder.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct CompileCommand : CommandOptions {
  std::string output;
};

/// "./NAME.sinter", NAME the last part of the model's path.
std::string default_folder(const std::string& model) {
  std::error_code error;
  std::filesystem::path path = std::filesystem::weakly_canonical(model, error);
  if (error) path = model;
  if (!path.has_filename()) path = path.parent_path();
  if (!std::filesystem::is_directory(path, error)) path = path.stem();
  const std::string name = path.filename().string();
  return (name.empty() ? "model" : name) + ".sinter";
}

Result<std::vector<MachineCode>> all_machine_code(const Program& program,
                                                  const std::vector<std::string>& archs) {
  std::vector<MachineCode> all;
  for (const std::string& arch : archs) {
    progress(fmt::format("{} for {}", counted(program.kernels.size(), "kernel"), arch));
    const auto start = std::chrono::steady_clock::now();
    SINTER_LET(code, machine_code(program, arch));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (!code.absent.empty()) {
      note(fmt::format("the kernels stay CUDA text: {}", code.absent));
      break;
    }
    note(fmt::format("{} for {}: {} from the cache, {:.2f} s",
                     counted(code.cubins.size(), "kernel"), arch, code.from_cache, took.count()));
    all.push_back(std::move(code));
  }
  return all;
}

Status compile_model(const CompileCommand& options) {
  SINTER_LET(request, to_request(options));
  request.for_folder = true;
  const std::string folder =
      options.output.empty() ? default_folder(options.model) : options.output;
  SINTER_TRY(check_plan_folder(folder));
  progress("compiling");
  SINTER_LET(built, build(request));
  const Program& program = *built.compiled.program;
  double total = 0;
  for (const auto& [stage, seconds] : built.seconds) {
    detail(fmt::format("{}: {:.3f} s", stage, seconds));
    total += seconds;
  }
  note(fmt::format("plan: {:.2f} s", total));
  SINTER_LET(code, all_machine_code(program, options.archs));
  {
    const InterruptsHeld held;
    SINTER_TRY(write_plan_folder(folder, built, code));
  }
  print_result(fmt::format("{}\n\n{}\n{}\n{} → {}\n", model_line(built),
                           summary_table(*built.unfused, program), kernel_table(program),
                           counted(program.kernels.size(), "kernel"), printable(folder, 4096)));
  return {};
}

}  // namespace

void add_compile(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "compile", "makes the fused plan: a folder of plan, CUDA text and ledger");
  auto options = std::make_shared<CompileCommand>();
  options->several_archs = true;
  add_model(command, *options);
  command
      .add_option("-o,--output", options->output, "the plan's folder; default: NAME.sinter here")
      ->type_name("DIR");
  add_phase(command, *options);
  add_compiling(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return compile_model(*options); }; });
}

}  // namespace sinter
