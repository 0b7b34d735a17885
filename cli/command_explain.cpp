#include <llvm/ADT/STLExtras.h>

#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/write_output.h"
#include "driver/board.h"
#include "driver/compile/predicted.h"
#include "driver/explain/against.h"
#include "driver/explain/relaxed_attention.h"
#include "driver/explain/why.h"

namespace sinter {
namespace {

struct ExplainCommand : CommandOptions {
  std::vector<std::string> why;
  std::string html, dot, measured, board, against, against_options;
  bool with_text = false;

  bool compares() const { return !against.empty() || !against_options.empty(); }
};

/// The options of the plan beside which this one is shown: the given options, overridden by
/// --against-options.
Result<CommandOptions> other_options(const ExplainCommand& options) {
  CommandOptions other = options;
  if (!options.against.empty()) other.model = options.against;
  CLI::App parser;
  add_compiling(parser, other);
  try {
    parser.parse(options.against_options);
  } catch (const CLI::ParseError& error) {
    return fail(error.what(), "--against-options",
                "give options of compiling, e.g. --against-options \"--numerics fast\"",
                ExitCode::usage);
  }
  return other;
}

/// The ledgers that this plan is compared with: saved ones, or another compilation's.
Result<std::vector<EntryLedger>> other_ledgers(const ExplainCommand& options,
                                               const ReportInputs& inputs) {
  std::vector<EntryLedger> there;
  SINTER_LET(saved, is_ledger(options.against));
  if (saved) {
    if (!options.against_options.empty())
      return fail("a saved ledger is of a plan that was compiled already", "--against-options",
                  "leave it out, or give a model with --against", ExitCode::usage);
    SINTER_LET(read, read_ledger(options.against));
    there = std::move(read);
  } else {
    SINTER_LET(other, other_options(options));
    SINTER_LET(request, to_request(other));
    request.compile.entries.clear();
    SINTER_LET(built, build(request));
    ReportInputs own;
    own.board = inputs.board;
    own.advice = false;
    there = ledger(built.compiled, options.phase, own);
  }
  if (!options.phase.empty())
    llvm::erase_if(there, [&](const EntryLedger& entry) { return entry.name != options.phase; });
  return there;
}

Result<ReportInputs> report_inputs(const ExplainCommand& options, const Compiled& compiled) {
  ReportInputs inputs;
  if (!options.measured.empty()) {
    SINTER_LET(measured, read_measured(options.measured));
    SINTER_TRY(measured.check(*compiled.program, options.measured));
    inputs.measured = std::move(measured);
  }
  if (!options.board.empty()) {
    SINTER_LET(rates, read_board(options.board));
    SINTER_LET(device, find_device(compiled.program->target));
    inputs.board = with_rates(std::move(device), rates);
  }
  return inputs;
}

Status explain_model(const ExplainCommand& options) {
  SINTER_LET(request, to_request(options));
  request.compile.entries.clear();  // the whole plan is made, and one entry of it shown
  SINTER_LET(built, build(request));
  const Compiled& compiled = built.compiled;
  if (compiled.module.entries.empty()) return fail("the model has no entry point", options.model);
  const std::string& only = options.phase;
  if (!only.empty()) SINTER_TRY(check_entry_names(compiled.module, only));
  const ReportHeader header{model_line(built), command_line, only};
  SINTER_LET(inputs, report_inputs(options, compiled));
  for (const std::string* output : {&options.html, &options.dot}) SINTER_TRY(check_output(*output));
  std::vector<ComparedEntry> compared;
  if (options.compares()) {
    SINTER_LET(there, other_ledgers(options, inputs));
    ReportInputs own;
    own.board = inputs.board;
    own.advice = false;
    compared = compare_ledgers(ledger(compiled, only, own), there);
  }
  if (!options.html.empty()) {
    PageParts parts;
    parts.module_text = options.with_text;
    if (options.compares()) parts.comparison = comparison_json(compared);
    SINTER_TRY(write_output("page", options.html, ledger_html(compiled, header, inputs, parts)));
  }
  if (!options.dot.empty())
    SINTER_TRY(write_output("graph", options.dot, ledger_dot(compiled, only)));
  if (options.compares()) {
    print_result(options.json ? comparison_json(compared) : comparison_text(compared));
  } else if (!options.why.empty()) {
    SINTER_LET(answers, why(compiled, options.why[0], options.why[1], only));
    print_result(options.json ? why_json(answers) : why_text(answers));
  } else if (options.json) {
    SINTER_LET(relaxed, relaxed_savings(built.model, built.options, compiled));
    inputs.relaxed = std::move(relaxed);
    print_result(ledger_json(compiled, header, inputs));
  } else if (options.html.empty() && options.dot.empty()) {
    SINTER_LET(relaxed, relaxed_savings(built.model, built.options, compiled));
    inputs.relaxed = std::move(relaxed);
    std::string text =
        fmt::format("{}\npredicted times: {}\n", header.model,
                    estimates_for(compiled.program->target, inputs.board.has_value()));
    for (const EntryLedger& entry : ledger(compiled, only, inputs))
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
  command
      .add_option("--why", options->why,
                  "do these two values or modules share a kernel, and why (not)?")
      ->type_name("A B")
      ->expected(2);
  command
      .add_option("--measured", options->measured,
                  "what `profile --json` or `bench --json` saved of this plan: its times stand in "
                  "the place of predicted ones")
      ->type_name("FILE");
  command
      .add_option("--board", options->board,
                  "rates that `devices --measure` kept of a board: times are stated with them; "
                  "decisions stay the target's")
      ->type_name("FILE");
  command
      .add_option("--against", options->against,
                  "compare with another model, a plan's folder, or a saved ledger: what `explain "
                  "--json` printed, or a plan's fusion.json")
      ->type_name("MODEL|LEDGER");
  command
      .add_option("--against-options", options->against_options,
                  "compare with the plan compiled with these options in the place of those given, "
                  "e.g. \"--numerics fast\"; of MODEL, where --against gives no other")
      ->type_name("OPTIONS");
  CLI::Option* html = command
                          .add_option("--html", options->html,
                                      "write a page: kernels as a picture, and the answer about "
                                      "any two values; one file, no network, no weights")
                          ->type_name("FILE");
  command.add_flag("--with-text", options->with_text, "put the module's text into the page, too")
      ->needs(html);
  command
      .add_option("--dot", options->dot, "write the kernels as a Graphviz graph; -: as the result")
      ->type_name("FILE");
  add_phase(command, *options);
  add_compiling(command, *options);
  add_sizes(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return explain_model(*options); }; });
}

}  // namespace sinter
