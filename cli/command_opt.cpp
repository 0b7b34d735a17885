#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/write_output.h"
#include "driver/opt/opt.h"

namespace sinter {
namespace {

struct OptCommand : OptRequest {
  std::string output;
};

Status opt_module(const OptCommand& options) {
  SINTER_LET(text, opt(options));
  if (!options.output.empty()) return write_output("module", options.output, text);
  print_result(text);
  return {};
}

}  // namespace

void add_opt(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("opt", "runs passes on a module and prints the module after them");
  auto options = std::make_shared<OptCommand>();
  command
      .add_option("MODEL", options->path,
                  "module .sir, or another model; -: a module's text from standard input")
      ->required();
  command
      .add_option("--pass", options->passes,
                  "run these passes alone, in this order; repeatable. The passes: " + pass_names())
      ->type_name("NAME")
      ->allow_extra_args(false)
      ->delimiter(',');
  command.add_flag("--device-inputs", options->options.device_inputs,
                   "for inputs in device memory: kernels check the row numbers among them");
  command.add_option("-o,--output", options->output, "write the module to this file")
      ->type_name("FILE");
  command.callback([options, &action] { action = [options] { return opt_module(*options); }; });
}

}  // namespace sinter
