#include <CLI/CLI.hpp>
#include <algorithm>
#include <thread>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/bisect/bisect.h"

namespace sinter {
namespace {

struct BisectCommand : CommandOptions {
  std::string reference, check, state, output = "reproducer";
  std::optional<double> max_error;
  int64_t timeout = CheckCommand().seconds;
  std::optional<double> slower_than;
  int64_t repeats = BisectOptions().repeats;
  std::optional<int64_t> jobs;
  uint64_t seed = 1;
  int64_t steps = RunsOptions().steps;
  InputOptions inputs;
};

/// Plans that are judged side by side where nobody says how many.
int64_t usual_jobs(const Backend& backend) {
  constexpr int64_t kMax = 4;  // each has a copy of the weights
  return backend.on_gpu() ? 1 : std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, kMax);
}

Status bisect_command(const BisectCommand& options) {
  if (options.no_fuse)
    return fail("a plan without fusions has none to find", "--no-fuse", "leave it out",
                ExitCode::usage);
  if (!options.reference.empty() && !options.check.empty())
    return fail("--reference stands beside it", "--check", "give one of the two", ExitCode::usage);
  if (options.slower_than && (!options.reference.empty() || !options.check.empty()))
    return fail("a search is for a time or for a result", "--slower-than",
                "leave out --reference and --check", ExitCode::usage);
  if (options.slower_than && !(*options.slower_than >= 1))
    return fail("the unfused plan takes as long as itself", "--slower-than",
                "give 1 or more: 1.02 allows 2 percent", ExitCode::usage);
  if (options.max_error && options.reference.empty())
    return fail("it is an error from a reference", "--max-error", "give --reference too",
                ExitCode::usage);
  SINTER_LET(request, to_request(options));
  SINTER_LET(calls, to_calls(options.inputs));
  SINTER_LET(backend, open_backend(options));
  if (options.slower_than && !backend->on_gpu())
    return fail("times are taken on a GPU", "--slower-than",
                "give --device cuda, on a machine that has one", ExitCode::usage);
  if (options.jobs.value_or(1) > 1 && backend->on_gpu())
    return fail("plans are checked one at a time on a GPU", "--jobs", "leave it out",
                ExitCode::usage);
  SINTER_LET(model, open_model(request.path, request.load));
  BisectOptions bisection;
  bisection.backend = backend;
  bisection.compile = request.compile;
  bisection.runs = {std::move(calls), options.seed, options.steps, {}};
  bisection.reference = options.reference;
  bisection.max_error = options.max_error;
  bisection.check = {options.check, options.timeout, verbosity == Verbosity::verbose};
  bisection.repeats = options.repeats;
  bisection.slower_than = options.slower_than;
  bisection.jobs = options.jobs.value_or(usual_jobs(*backend));
  bisection.state = options.state;
  bisection.output = options.output;
  bisection.progress = [](const std::string& text) {
    progress(text);
    return true;
  };
  SINTER_LET(report, bisect(model, bisection));
  print_result(options.json ? bisect_json(report) : bisect_text(report));
  if (report.verdict == BisectReport::Verdict::right) return {};
  return fail("the plan is wrong", options.model, "the report says what makes it so",
              ExitCode::check_failed);
}

}  // namespace

void add_bisect(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "bisect", "which fusions change a result, and a module of their kernels that fails alone");
  auto options = std::make_shared<BisectCommand>();
  add_model(command, *options);
  command
      .add_option("--reference", options->reference,
                  "safetensors or .npz with right results, as `verify` reads it; default: the "
                  "unfused plan is right, bit for bit")
      ->type_name("FILE");
  command
      .add_option("--max-error", options->max_error,
                  "the largest difference from the reference that is right; default: as `verify`")
      ->type_name("E");
  command
      .add_option("--check", options->check,
                  "a shell's command that ends with 0 where a plan is right, as for `git bisect "
                  "run`; the plan's folder is its last argument, or stands for {}")
      ->type_name("COMMAND");
  command
      .add_option(
          "--slower-than", options->slower_than,
          "GPU: a plan is wrong where a call of an entry takes more than R times as long as "
          "the unfused plan's, timed in turns")
      ->type_name("R");
  add_integer(command, "--timeout", options->timeout,
              "seconds for a check; a plan whose check takes longer is wrong", kPositive)
      ->type_name("S")
      ->capture_default_str();
  add_integer(command, "--repeats", options->repeats,
              "runs of the fused plan that are all right before it is called right", kPositive)
      ->capture_default_str();
  add_integer(
      command, "--jobs", options->jobs,
      "plans that are checked side by side, on the CPU; default: one for each core, at most 4",
      kPositive);
  command
      .add_option("--state", options->state,
                  "keeps the answers, so that the same command goes on after an interrupt")
      ->type_name("FILE");
  command.add_option("-o,--output", options->output, "the reproducer's folder; '': none")
      ->type_name("DIR")
      ->capture_default_str();
  add_integer(command, "--seed", options->seed, "of random tokens and inputs");
  add_integer(command, "--steps", options->steps,
              "of decoding after a language model's prompt of 16 tokens", kNotNegative)
      ->capture_default_str();
  add_inputs(command, options->inputs);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return bisect_command(*options); }; });
}

}  // namespace sinter
