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

/// The arguments as a shell would take them again.
std::string command_line(const ExplainCommand& options) {
  std::string line = "sinter explain " + options.model;
  const auto add = [&](std::string_view option, const std::string& value) {
    if (!value.empty()) line += fmt::format(" {} {}", option, value);
  };
  for (const std::string& arch : options.archs) add("--arch", arch);
  add("--numerics", options.numerics);
  add("--dtype", options.dtype);
  add("--attention", options.attention);
  add("--phase", options.phase);
  for (const std::string& size : options.sizes) add("--symbol", size);
  for (const std::string& pair : options.required) add("--require", pair);
  for (const std::string& pair : options.forbidden) add("--forbid", pair);
  if (options.no_fuse) line += " --no-fuse";
  if (options.stop_after >= 0) add("--stop-after", std::to_string(options.stop_after));
  return line;
}

Status explain_model(const ExplainCommand& options) {
  SINTER_LET(request, to_request(options));
  SINTER_LET(built, build(request));
  const Compiled& compiled = built.compiled;
  if (compiled.module.entries.empty()) return fail("the model has no entry point", options.model);
  const ReportHeader header{model_line(built), command_line(options)};
  if (!options.html.empty()) SINTER_TRY(write_text(options.html, ledger_html(compiled, header)));
  if (!options.dot.empty()) SINTER_TRY(write_text(options.dot, ledger_dot(compiled)));
  if (!options.why.empty()) {
    SINTER_LET(answers, why(compiled, options.why[0], options.why[1]));
    print_result(options.json ? why_json(answers) : why_text(answers));
  } else if (options.json) {
    print_result(ledger_json(compiled, header));
  } else if (options.html.empty() && options.dot.empty()) {
    std::string text = header.model + "\n";
    for (const EntryLedger& entry : ledger(compiled))
      text += "\n" + ledger_text(entry, verbosity == Verbosity::verbose);
    print_result(text);
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
