#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/compile/plan_summary.h"
#include "driver/compile/predicted.h"
#include "driver/plan_folder/write.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct CompileCommand : CommandOptions {
  std::string output;
  bool embed = false;
  bool text_only = false;
  int64_t context = 0;
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
    // Plans with library calls carry Sinter's own kernels for their matrix products, too.
    const size_t products = code.kernels.size() - program.kernels.size();
    note(fmt::format("{}{} for {}: {} from the cache, {:.2f} s",
                     counted(program.kernels.size(), "kernel"),
                     products ? " and " + counted(products, "kernel") + " for matrix products" : "",
                     arch, code.from_cache, took.count()));
    detail("what they use of a multiprocessor\n" + resource_table(program, code));
    all.push_back(std::move(code));
  }
  return all;
}

/// The text of --record, whose forms the kernels get.
Result<std::string> use_record(const std::string& path, CompileOptions& compile) {
  if (path.empty()) return std::string();
  SINTER_LET(record, read_record(path));
  compile.forms = std::move(record.record.forms);
  return std::move(record.text);
}

/// "embed" and "embed=PATH" of --weights.
Status read_embed(CompileCommand& options) {
  constexpr std::string_view kEmbed = "embed";
  if (!options.weights || !options.weights->starts_with(kEmbed)) return {};
  const std::string rest = options.weights->substr(kEmbed.size());
  if (!rest.empty() && rest[0] != '=') return {};
  if (rest == "=")
    return fail("no path stands after \"embed=\"", "--weights",
                "give one, or embed alone for the model's own weights", ExitCode::usage);
  options.embed = true;
  options.weights.reset();
  if (!rest.empty()) options.weights = rest.substr(1);
  return {};
}

Status compile_model(CompileCommand options) {
  SINTER_TRY(read_embed(options));
  if (is_plan_folder(options.model))
    return fail("this is a plan, compiled already", options.model, "give the model",
                ExitCode::usage);
  SINTER_LET(request, to_request(options));
  request.for_folder = true;
  request.embed = options.embed;
  request.load.context = options.context;
  SINTER_LET(record, use_record(options.record, request.compile));
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
  const std::vector<std::string> archs =
      options.archs.empty() ? std::vector{request.compile.target} : options.archs;
  std::vector<MachineCode> code;
  if (!options.text_only) {
    SINTER_LET(compiled, all_machine_code(program, archs));
    code = std::move(compiled);
  }
  SINTER_LET(files, read_model_files(options.model));
  progress("writing the plan");
  {
    // Weights take long to write: an interrupt then ends the program and removes the folder.
    std::optional<InterruptsHeld> held;
    if (!options.embed) held.emplace();
    SINTER_TRY(write_plan_folder(
        folder, {built, code, files, record, options.random_weights, options.embed}));
  }
  print_result(fmt::format("{}\npredicted times: {}\n\n{}\n{}\n{} → {}\n", model_line(built),
                           estimates_for(program.target),
                           summary_table(built.unfused, built.compiled), kernel_table(program),
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
  command.add_flag("--no-machine-code", options->text_only,
                   "the kernels stay CUDA text, which is compiled where the plan runs on a GPU");
  add_integer(command, "--context", options->context,
              "tokens of the longest text that the plan will run; chooses between the two sets of "
              "frequencies that some models have",
              kPositive);
  command.get_option("--weights")
      ->description(
          "safetensors that the plan's weights are read from, or their folder; embed or "
          "embed=PATH: "
          "copies them into the plan, as a device holds them")
      ->type_name("PATH|embed");
  command
      .add_option(
          "--record", options->record,
          "a decision record that the plan carries: algorithms of matrix products on a GPU, "
          "forms of kernels")
      ->type_name("FILE");
  add_phase(command, *options);
  add_streaming(command, *options);
  add_integer(command, "--sequences", options->sequences,
              "sequences of a language model that decode together, at most",
              IntegerRange<int64_t>{.least = 1, .most = kMaxSequences})
      ->capture_default_str();
  add_compiling(command, *options);
  add_sizes(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return compile_model(*options); }; });
}

}  // namespace sinter
