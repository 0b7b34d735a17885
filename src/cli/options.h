// Options that commands share.
#pragma once

#include "driver/build.h"

namespace CLI {
class App;
}

namespace sinter {

/// As they stand on the command line.
struct CommandOptions {
  std::string model;
  std::string dtype;
  std::optional<uint64_t> random_weights;
  std::string device = "auto";
  std::vector<std::string> archs = {"sm_90a"};
  std::string numerics = "strict";
  bool no_fuse = false;
  std::vector<std::string> required, forbidden;  // "A,B"
  int64_t stop_after = -1;
  std::string phase;
  bool json = false;
};

void add_model(CLI::App& command, CommandOptions& options);  // MODEL --dtype --random-weights
void add_compiling(CLI::App& command,
                   CommandOptions& options);  // --arch --numerics ... --stop-after
void add_phase(CLI::App& command, CommandOptions& options);
void add_device(CLI::App& command, CommandOptions& options);
void add_json(CLI::App& command, CommandOptions& options);
void add_verbosity(CLI::App& command);  // -v -q

/// The options' meaning; usage errors.
Result<BuildRequest> to_request(const CommandOptions& options);
/// Can this build run plans on that device?
Status check_device(const CommandOptions& options);

}  // namespace sinter
