#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/verify/invariant.h"
#include "driver/verify/report.h"
#include "driver/verify/self_report.h"

namespace sinter {
namespace {

struct VerifyCommand : CommandOptions {
  std::string reference;
  uint64_t seed = 1;
  std::optional<int64_t> steps;
  bool forced = false;
  InputOptions inputs;
  size_t ranks = 1;
  bool self = false;
};

Status outcome(bool passed, const std::string& model) {
  if (passed) return {};
  return fail("the plan breaks a promise", model, "the report says which one",
              ExitCode::check_failed);
}

/// The options that both checks of a plan by itself take. `compiling`: how the plan is made.
Result<SelfOptions> to_self(const VerifyCommand& options, const CommandOptions& compiling) {
  SINTER_LET(request, to_request(compiling));
  SINTER_LET(backend, open_backend(options));
  SelfOptions self;
  self.backend = std::move(backend);
  self.compile = std::move(request.compile);
  self.open = std::move(request.load);
  self.seed = options.seed;
  self.on_stage = [](const std::string& text) { progress(text); };
  return self;
}

Status verify_self_command(const VerifyCommand& options) {
  const InputOptions& inputs = options.inputs;
  for (const auto& [given, option] : {std::pair(options.forced, "--teacher-forced"),
                                      {!options.reference.empty(), "--reference"},
                                      {!inputs.file.empty(), "--inputs"},
                                      {inputs.random.has_value(), "--random-inputs"},
                                      {!inputs.symbols.empty(), "--symbol"},
                                      {inputs.calls.has_value(), "--calls"},
                                      {options.ranks != 1, "--ranks"}})
    if (given)
      return fail("--self reads its own text, and continues it with the likeliest tokens", option,
                  "leave it out", ExitCode::usage);
  SINTER_LET(self, to_self(options, options));
  self.steps = options.steps;
  self.prefill = to_prefill(options);
  SINTER_LET(report, verify_self(options.model, self));
  return std::visit(
      [&](const auto& found) {
        print_result(options.json ? self_json(found) : self_text(found));
        return outcome(found.passed(), options.model);
      },
      report);
}

/// Checks that an invariant plan keeps its promise, where no other check is asked for.
Status verify_invariance_command(const VerifyCommand& options) {
  for (const auto& [given, option] : {std::pair(options.forced, "--teacher-forced"),
                                      {options.steps.has_value(), "--steps"},
                                      {!options.inputs.file.empty(), "--inputs"},
                                      {options.inputs.random.has_value(), "--random-inputs"},
                                      {!options.inputs.symbols.empty(), "--symbol"},
                                      {options.inputs.calls.has_value(), "--calls"},
                                      {options.activation_bytes.has_value(), "--activation-memory"},
                                      {options.prefill_chunk.has_value(), "--prefill-chunk"},
                                      {options.ranks != 1, "--ranks"}})
    if (given)
      return fail("--invariant reads seeded texts in calls of its own", option,
                  "leave it out, or add --self", ExitCode::usage);
  // A plan's folder has its options; whether it is invariant is seen when it is opened.
  CommandOptions compiling = options;
  compiling.invariant = !is_plan_folder(options.model);
  SINTER_LET(check, to_self(options, compiling));
  SINTER_LET(report, verify_invariance(options.model, check));
  print_result(options.json ? invariant_json(report) : invariant_text(report));
  return outcome(report.passed(), options.model);
}

Status verify_command(const VerifyCommand& options) {
  if (options.no_fuse)
    return fail("verify compares the fused plan with the unfused one", "--no-fuse", "leave it out",
                ExitCode::usage);
  if (options.self) return verify_self_command(options);
  if (options.invariant && options.reference.empty()) return verify_invariance_command(options);
  for (const auto& [given, option] :
       {std::pair(options.activation_bytes.has_value(), "--activation-memory"),
        {options.prefill_chunk.has_value(), "--prefill-chunk"}})
    if (given)
      return fail("a reference is read in calls of whole texts", option,
                  "leave it out, or add --self", ExitCode::usage);
  SINTER_LET(request, to_request(options));
  SINTER_LET(calls, to_calls(options.inputs));
  SINTER_LET(backend, open_backend(options));
  VerifyOptions verify;
  verify.backend = backend;
  if (options.steps) verify.steps = *options.steps;
  verify.forced = options.forced;
  if (request.load.dtype) verify.dtypes = {*request.load.dtype};
  verify.reference = options.reference;
  verify.compile = request.compile;
  verify.seed = options.seed;
  verify.ranks = options.ranks;
  verify.open = request.load;
  verify.calls = std::move(calls);
  SINTER_LET(report, verify_model(options.model, verify));
  print_result(options.json ? verify_json(report) : verify_text(report));
  return outcome(report.passed(), options.model);
}

}  // namespace

void add_verify(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("verify",
                              "prove that fused and unfused plans agree bit for bit; compare with "
                              "float64 and a reference; of fast numerics, bound the error");
  auto options = std::make_shared<VerifyCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  command
      .add_option("--reference", options->reference,
                  "safetensors or .npz with input_ids and logits, hidden_i, greedy, nll_mean as "
                  "far as known; "
                  "of a module: with outputs, ENTRY.NAME or NAME")
      ->type_name("FILE");
  add_integer(command, "--seed", options->seed,
              "of random tokens, where there is no reference and, with --self, no tokenizer");
  add_inputs(command, options->inputs);
  add_ranks(command, options->ranks);
  add_integer(command, "--steps", options->steps,
              "of decoding after the first call; default: 16, with --self 32", kPositive);
  command.add_flag("--teacher-forced", options->forced,
                   "decode seeded tokens instead of the likeliest");
  command.add_flag(
      "--self", options->self,
      "the check for one's own model: predict a bundled text and continue it, of an encoder: "
      "read pieces of it; bits, tokens, perplexity, speed and memory, fused, unfused "
      "and in float64");
  add_prefill(command, *options);
  add_compiling(command, *options);
  command.get_option("--invariant")
      ->description(
          "prove that a token's results, bit for bit, depend on its own sequence alone; beside "
          "--self or --reference: of the plan that is checked");
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return verify_command(*options); }; });
}

}  // namespace sinter
