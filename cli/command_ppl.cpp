#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/generate/perplexity.h"
#include "driver/generate/prefill_report.h"
#include "driver/text.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

struct PplCommand : CommandOptions {
  std::string tokens, text;
  int64_t window = 0;
  bool recompute = false;
};

Status ppl_command(const PplCommand& options) {
  if (!options.kv.empty() && (options.recompute || options.window > 0))
    return fail("--kv has a window of its own", "sinter ppl", "leave out --window and --recompute",
                ExitCode::usage);
  SINTER_LET(request, to_request(options));
  if (options.tokens.empty() == options.text.empty())
    return fail("give either --text or --tokens", "sinter ppl", {}, ExitCode::usage);
  SINTER_LET(ids, options.text.empty() ? read_tokens(options.tokens)
                                       : read_text_tokens(options.model, options.text));
  SINTER_LET(backend, open_backend(options));
  const auto length = static_cast<int64_t>(ids.size());
  request.load.context = options.window > 0 ? std::min(options.window, length) : length;
  SINTER_LET(model, open_model(request.path, request.load));
  PerplexityOptions measuring;
  measuring.backend = backend;
  measuring.compile = request.compile;
  measuring.window = options.window;
  measuring.recompute = options.recompute;
  measuring.prefill = to_prefill(options);
  SINTER_LET(result, perplexity(model, ids, measuring));
  detail("a piece of the text: " + prefill_text(result.prefill));
  if (options.json) {
    const nlohmann::ordered_json json = {{"perplexity", result.value()},
                                         {"nll_mean", result.mean()},
                                         {"predicted", result.predicted},
                                         {"prefill", prefill_json(result.prefill)}};
    print_result(json.dump(2) + "\n");
  } else {
    print_result(fmt::format("perplexity {:.6g} over {} (mean negative log-likelihood {:.9g})\n",
                             result.value(), counted(result.predicted, "token"), result.mean()));
  }
  return {};
}

}  // namespace

void add_ppl(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand("ppl", "perplexity of a text");
  auto options = std::make_shared<PplCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  command
      .add_option("--tokens", options->tokens,
                  "file with the text's token ids, separated by commas or spaces")
      ->type_name("FILE");
  command.add_option("--text", options->text, "file with the text, for the model's own tokenizer")
      ->type_name("FILE");
  add_integer(command, "--window", options->window,
              "tokens that a prediction sees at most; default: the model's positions", kPositive);
  command.add_flag("--recompute", options->recompute,
                   "compute every prediction anew from the window before it");
  add_streaming(command, *options);
  add_prefill(command, *options);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return ppl_command(*options); }; });
}

}  // namespace sinter
