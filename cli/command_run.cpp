#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/run/report.h"

namespace sinter {
namespace {

struct RunCommand : CommandOptions {
  std::vector<int32_t> tokens;
  int64_t more = 0;
  std::string inputs, out;
  std::vector<std::string> keep, symbols;
};

Status run_command(const RunCommand& options) {
  if (options.tokens.empty() == options.inputs.empty())
    return fail("give either --tokens or --inputs", "sinter run",
                "--tokens 1,2,3 runs a language model", ExitCode::usage);
  // The model's own decoder or encoder runs on tokens: it knows entries and sizes.
  for (const auto& [given, option] : {std::pair(!options.phase.empty(), "--phase"),
                                      std::pair(!options.symbols.empty(), "--symbol")})
    if (given && options.inputs.empty())
      return fail("only a run on --inputs takes it", option, "leave it out, or give --inputs",
                  ExitCode::usage);
  if (options.more > 0 && options.tokens.empty())
    return fail("tokens are added to tokens, not to inputs", "-n", "give --tokens",
                ExitCode::usage);
  SINTER_LET(request, to_request(options));
  SINTER_LET(backend, open_backend(options));
  request.load.context = text_tokens(options.tokens.size(), options.more);
  SINTER_LET(model, load_model(request.path, request.load));
  if (const std::string text = context_note(model, request.load.context); !text.empty()) note(text);
  RunOptions run{backend, options.keep, request.compile, {}};
  SINTER_LET(symbols, parse_sizes(options.symbols));
  run.symbols = std::move(symbols);
  TokenRun result;
  if (options.inputs.empty()) {
    SINTER_LET(tokens, run_tokens(model, options.tokens, options.more, run));
    result = std::move(tokens);
  } else {
    const std::string entry = !options.phase.empty()         ? options.phase
                              : model.module.entries.empty() ? ""
                                                             : model.module.entries[0].name;
    SINTER_LET(values, run_inputs(model, entry, options.inputs, run));
    result.values = std::move(values);
  }
  if (!options.out.empty()) SINTER_TRY(write_tensors(options.out, result.values));
  print_result(options.json ? run_json(result) : run_text(result));
  return {};
}

}  // namespace

void add_run(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand("run", "one forward pass");
  auto options = std::make_shared<RunCommand>();
  add_model(command, *options);
  add_integers(command, "--tokens", options->tokens, "token ids of one sequence", kTokenIds);
  add_integer(command, "-n", options->more, "greedy tokens to add", kNotNegative);
  command
      .add_option("--inputs", options->inputs,
                  "safetensors with a tensor for every input of the entry")
      ->type_name("FILE");
  command.add_option("--out", options->out, "write outputs and kept values as safetensors")
      ->type_name("FILE");
  command.add_option("--keep", options->keep, "a value to return beside the outputs")
      ->type_name("NAME");
  command.add_option("--symbol", options->symbols, "a size that no input tells")
      ->type_name("NAME=VALUE");
  add_phase(command, *options);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return run_command(*options); }; });
}

}  // namespace sinter
