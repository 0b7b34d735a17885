#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/verify/report.h"

namespace sinter {
namespace {

struct VerifyCommand : CommandOptions {
  std::string reference;
  uint64_t seed = 1;
  int64_t steps = 16;
  bool forced = false;
  InputOptions inputs;
};

Status verify_command(const VerifyCommand& options) {
  if (options.no_fuse)
    return fail("verify compares the fused plan with the unfused one", "--no-fuse", "leave it out",
                ExitCode::usage);
  SINTER_LET(request, to_request(options));
  SINTER_LET(calls, to_calls(options.inputs));
  SINTER_LET(backend, open_backend(options));
  VerifyOptions verify;
  verify.backend = backend;
  verify.steps = options.steps;
  verify.forced = options.forced;
  if (request.load.dtype) verify.dtypes = {*request.load.dtype};
  verify.reference = options.reference;
  verify.target = request.compile.target;
  verify.fusion = request.compile.fusion;
  verify.seed = options.seed;
  verify.random_weights = request.load.random_weights;
  verify.weights = request.load.weights;
  verify.calls = std::move(calls);
  SINTER_LET(report, verify_model(options.model, verify));
  print_result(options.json ? verify_json(report) : verify_text(report));
  if (report.passed()) return {};
  return fail("the plan breaks a promise", options.model,
              "the report names the first value that differs", ExitCode::check_failed);
}

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("verify",
                              "prove that fused and unfused plans agree bit for bit; compare with "
                              "float64 and a reference; of fast numerics, bound the error");
  auto options = std::make_shared<VerifyCommand>();
  add_model(command, *options);
  command
      .add_option(
          "--reference", options->reference,
          "safetensors with input_ids and logits, hidden_i, greedy, nll_mean as far as known; "
          "of a module: with outputs, ENTRY.NAME or NAME")
      ->type_name("FILE");
  add_integer(command, "--seed", options->seed, "of random tokens, where there is no reference");
  add_inputs(command, options->inputs);
  add_integer(command, "--steps", options->steps, "of decoding after the first call", kPositive)
      ->capture_default_str();
  command.add_flag("--teacher-forced", options->forced,
                   "decode seeded tokens instead of the likeliest");
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return verify_command(*options); }; });
}

}  // namespace sinter
