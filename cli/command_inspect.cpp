#include <CLI/CLI.hpp>
#include <limits>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/inspect/inspect.h"

namespace sinter {
namespace {

Status inspect_model(const CommandOptions& options) {
  SINTER_LET(request, to_request(options));
  request.load.context = std::numeric_limits<int64_t>::max();  // of all that the model can take
  SINTER_LET(model, open_model(request.path, request.load));
  SINTER_LET(inspection, inspect(model, request.compile.target, request.compile.sizes));
  print_result(options.json ? inspection_json(inspection) : inspection_text(inspection));
  return {};
}

}  // namespace

void add_inspect(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "inspect", "what a model is and what limits its parts on a device; reads no weights");
  auto options = std::make_shared<CommandOptions>();
  add_model(command, *options);
  add_recompile(command, *options);
  command.add_option("--arch", options->archs, "the device")
      ->type_name("NAME")
      ->expected(1)
      ->default_str(CompileOptions().target);
  add_sizes(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return inspect_model(*options); }; });
}

}  // namespace sinter
