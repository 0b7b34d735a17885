#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/reduce/reduce_file.h"
#include "driver/text_table.h"

namespace sinter {
namespace {

std::string size_text(const ModuleSize& size) {
  return fmt::format("{}, {}, {}", counted(size.entries, "entry", "entries"),
                     counted(size.ops, "op"),
                     counted(size.leaves, "value from outside", "values from outside"));
}

Status reduce_command(ReduceRequest request) {
  if (request.output.empty()) request.output = "reduced.sir";
  request.check.shows_output = verbosity == Verbosity::verbose;
  request.progress = [](int64_t checks, const ModuleSize& best) {
    progress(
        fmt::format("{}: {}", counted(static_cast<uint64_t>(checks), "check"), size_text(best)));
  };
  SINTER_LET(report, reduce_file(request));
  print_result(report.text);
  note(fmt::format("{} → {}; {}{}; written to {}", size_text(report.before),
                   size_text(report.after), counted(static_cast<uint64_t>(report.checks), "check"),
                   report.timed_out == 0 ? ""
                                         : fmt::format(", {} of which had no end after {} s",
                                                       report.timed_out, request.check.seconds),
                   printable(request.output)));
  return {};
}

}  // namespace

void add_reduce(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "reduce", "delta debugging: the smallest module for which a command still succeeds");
  auto options = std::make_shared<ReduceRequest>();
  command.add_option("MODULE", options->path, "module .sir")->required();
  command
      .add_option("--check", options->check.text,
                  "a shell's command that ends with 0 where a module still fails, as for C-Reduce; "
                  "the module's path is its last argument, or stands for {}")
      ->type_name("COMMAND")
      ->required();
  add_integer(command, "--timeout", options->check.seconds,
              "seconds for a check; one that takes longer has not succeeded", kPositive)
      ->type_name("S")
      ->capture_default_str();
  add_integer(command, "--tries", options->tries, "checks to make at most; default: no limit",
              kPositive);
  command
      .add_option("-o,--output", options->output,
                  "the smallest module so far, at every moment; default: reduced.sir")
      ->type_name("FILE");
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return reduce_command(*options); }; });
}

}  // namespace sinter
