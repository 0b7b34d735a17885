#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/ranks.h"
#include "driver/run/ranks.h"
#include "driver/run/report.h"
#include "driver/text_file.h"

namespace sinter {
namespace {

struct RunCommand : CommandOptions {
  std::vector<int32_t> tokens;
  int64_t more = 0;
  InputOptions inputs;
  size_t ranks = 1;
  std::string out;
  std::vector<std::string> keep;
};

Status check_run(const RunCommand& options) {
  const bool on_tokens = !options.tokens.empty();
  if (on_tokens == options.inputs.given())
    return fail("give either --tokens, or --inputs or --random-inputs", "sinter run",
                "--tokens 1,2,3 runs a language model", ExitCode::usage);
  // The model's own decoder or encoder runs on tokens: it knows entries and sizes.
  for (const auto& [given, option] : {std::pair(!options.phase.empty(), "--phase"),
                                      std::pair(!options.inputs.symbols.empty(), "--symbol"),
                                      std::pair(options.inputs.calls.has_value(), "--calls"),
                                      std::pair(options.ranks != 1, "--ranks")})
    if (given && on_tokens)
      return fail("only a run on --inputs or --random-inputs takes it", option,
                  "leave it out, or give inputs", ExitCode::usage);
  if (options.more > 0 && !on_tokens)
    return fail("tokens are added to tokens, not to inputs", "-n", "give --tokens",
                ExitCode::usage);
  return {};
}

/// "A,B" of --phase; empty if it is not given.
Result<std::vector<std::string>> parse_entries(const std::string& text) {
  std::vector<std::string> names;
  if (text.empty()) return names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma == begin)
      return fail(fmt::format("name {} of \"{}\" is empty", names.size() + 1, printable(text)),
                  "--phase", "write for example prefill,decode", ExitCode::usage);
    names.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  return names;
}

/// Every rank has a result, and a file for it.
Status run_ranks_command(const RunCommand& options, const CallsOptions& calls,
                         const OpenOptions& load, const RunOptions& run) {
  SINTER_TRY(check_ranks(options.ranks, run.backend->on_gpu()));
  if (!options.out.empty() && of_rank(options.out, 0) == options.out)
    return fail("all ranks would write one file", fmt::format("--out {}", printable(options.out)),
                "put {rank} into its name, for example out.{rank}.npz", ExitCode::usage);
  for (size_t rank = 0; rank < options.ranks; ++rank)
    SINTER_TRY(check_output_file(of_rank(options.out, rank)));
  SINTER_LET(results, run_ranks(options.model, load, calls, run, options.ranks));
  for (size_t rank = 0; rank < options.ranks; ++rank) {
    const std::string out = of_rank(options.out, rank);
    if (out.empty()) continue;
    SINTER_TRY(write_tensors(out, results[rank].values));
    note(fmt::format("values of rank {} → {}", rank, out));
  }
  print_result(options.json ? ranks_json(results) : ranks_text(results));
  return {};
}

Status run_command(const RunCommand& options) {
  SINTER_TRY(check_run(options));
  SINTER_LET(request, to_request(options));
  SINTER_LET(calls, to_calls(options.inputs));
  SINTER_LET(entries, parse_entries(options.phase));
  calls.entries = std::move(entries);
  SINTER_LET(backend, open_backend(options));
  request.load.context = text_tokens(options.tokens.size(), options.more);
  if (options.ranks > 1)
    return run_ranks_command(options, calls, request.load,
                             {backend, options.keep, request.compile});
  SINTER_LET(model, open_model(request.path, request.load));
  if (const std::string text = context_note(model, request.load.context); !text.empty()) note(text);
  SINTER_TRY(check_output_file(options.out));
  const RunOptions run{backend, options.keep, request.compile};
  TokenRun result;
  if (options.inputs.given()) {
    SINTER_LET(values, run_inputs(model, calls, run));
    result.values = std::move(values);
  } else {
    SINTER_LET(tokens, run_tokens(model, options.tokens, options.more, run));
    result = std::move(tokens);
  }
  if (!options.out.empty()) {
    SINTER_TRY(write_tensors(options.out, result.values));
    note(fmt::format("values → {}", options.out));
  }
  print_result(options.json ? run_json(result) : run_text(result));
  return {};
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("run", "one forward pass, or calls of a module's entries");
  auto options = std::make_shared<RunCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  add_integers(command, "--tokens", options->tokens, "token ids of one sequence", kTokenIds);
  add_integer(command, "-n", options->more, "greedy tokens to add", kNotNegative);
  add_inputs(command, options->inputs);
  add_ranks(command, options->ranks);
  command
      .add_option("--out", options->out,
                  "write outputs and kept values, as .npy or .npz where the name ends so, else as "
                  "safetensors")
      ->type_name("FILE");
  command
      .add_option("--keep", options->keep,
                  "a value, or a module's last one, to return beside the outputs")
      ->type_name("NAME");
  command
      .add_option("--phase", options->phase,
                  "entries to call, in this order; default: all of a module, the first of a "
                  "language model")
      ->type_name("A,B");
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return run_command(*options); }; });
}

}  // namespace sinter
