#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "driver/machine.h"

namespace sinter {

namespace {

struct DevicesCommand : CommandOptions {
  bool measure = false;
};

Status devices_command(const DevicesCommand& options) {
  if (!options.measure) {
    print_result(options.json ? devices_json() : devices_text());
    return {};
  }
  SINTER_LET(rates, measure_devices([](const std::string& text) { progress(text); }));
  print_result(options.json ? rates_json(rates) : rates_text(rates));
  return {};
}

}  // namespace

void add_devices(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("devices", "devices to compile for, and what this machine has");
  auto options = std::make_shared<DevicesCommand>();
  command.add_flag("--measure", options->measure,
                   "measure the rates of this machine's GPUs and keep them, for the times that "
                   "`bench` predicts and `explain --board` states");
  add_json(command, *options);
  add_verbosity(command);
  command.callback(
      [options, &action] { action = [options] { return devices_command(*options); }; });
}

void add_cache(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand("cache", "compiled kernels kept on disk");
  command.require_subcommand(1);
  const auto add = [&](const char* name, const char* help, Result<std::string> (*run)()) {
    CLI::App& part = *command.add_subcommand(name, help);
    add_verbosity(part);
    part.callback([run, &action] {
      action = [run]() -> Status {
        SINTER_LET(text, run());
        print_result(text);
        return {};
      };
    });
  };
  add("status", "where it is and how much it holds", cache_status);
  add("clear", "remove all of it", clear_cache);
}

}  // namespace sinter
