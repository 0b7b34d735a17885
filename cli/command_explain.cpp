#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/explain/why.h"
#include "driver/text_file.h"

namespace sinter {
namespace {

struct ExplainCommand : CommandOptions {
  std::vector<std::string> why;
  std::string html, dot;
};

constexpr std::string_view kUsualPhase = "prefill";

/// The entry that --phase names, else prefill, else the first.
Result<size_t> chosen_entry(const Compiled& compiled, const std::string& phase) {
  const std::vector<Entry>& entries = compiled.module.entries;
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].name == (phase.empty() ? kUsualPhase : phase)) return i;
  if (phase.empty()) return 0;
  return fail(fmt::format("no entry point is called \"{}\"", printable(phase)), "--phase", {},
              ExitCode::usage);
}

Status explain_model(const ExplainCommand& options) {
  SINTER_LET(request, to_request(options));
  SINTER_LET(built, build(request));
  const Compiled& compiled = built.compiled;
  if (compiled.module.entries.empty()) return fail("the model has no entry point", options.model);
  SINTER_LET(entry, chosen_entry(compiled, options.phase));
  const std::string& name = compiled.module.entries[entry].name;
  if (!options.html.empty()) SINTER_TRY(write_text(options.html, ledger_html(compiled)));
  if (!options.dot.empty()) SINTER_TRY(write_text(options.dot, ledger_dot(compiled, entry)));
  if (!options.why.empty()) {
    SINTER_LET(answer, why(compiled, entry, options.why[0], options.why[1]));
    print_result(options.json ? why_json(answer, name) : why_text(answer));
  } else if (options.json) {
    print_result(ledger_json(compiled));
  } else if (options.html.empty() && options.dot.empty()) {
    print_result(model_line(built) + "\n\n" +
                 ledger_text(ledger(compiled)[entry], verbosity == Verbosity::verbose));
  }
  return {};
}

}  // namespace

void add_explain(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("explain", "what was fused, what was refused, and why");
  auto options = std::make_shared<ExplainCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  command.add_option("--why", options->why, "do these two values share a kernel, and why (not)?")
      ->type_name("A B")
      ->expected(2);
  command.add_option("--html", options->html, "write the ledger as one web page")
      ->type_name("FILE");
  command.add_option("--dot", options->dot, "write the kernels as a Graphviz graph")
      ->type_name("FILE");
  add_phase(command, *options);
  add_compiling(command, *options);
  add_sizes(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return explain_model(*options); }; });
}

}  // namespace sinter
