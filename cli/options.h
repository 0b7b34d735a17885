// Options that commands share.
#pragma once

#include "driver/backend.h"
#include "driver/build.h"
#include "driver/generate/prefill_chunk.h"
#include "driver/routing.h"
#include "driver/run/entry_calls.h"

namespace CLI {
class App;
}

namespace sinter {

/// As they stand on the command line.
struct CommandOptions {
  std::string model;
  std::string dtype;
  std::optional<uint64_t> random_weights;
  bool recompile = false;
  std::optional<std::string> weights;
  std::vector<std::string> ignored_keys;
  std::string device = "auto";
  std::string record;
  bool slow_products = false;
  std::vector<std::string> archs;  // empty: sm_90a
  bool several_archs = false;      // compile's: more than one may be given
  bool compiles = false;           // the command has the options of add_compiling
  std::string numerics;            // empty: strict
  std::string attention;           // empty: tiled
  std::string products;            // empty: library
  bool invariant = false;
  std::string dequantize;  // empty: 32
  bool no_fuse = false;
  std::vector<std::string> required, forbidden;  // "A,B"
  int64_t stop_after = -1;
  std::string phase;
  std::string kv;                       // "sink=4,window=1020"
  int64_t sequences = kUsualSequences;  // that decode together at most
  std::vector<std::string> sizes;       // "N=16", of add_sizes
  std::optional<int64_t> activation_bytes;
  std::optional<int64_t> prefill_chunk;
  bool json = false;
};

/// The inputs, sizes and number of calls of a module's entries, as given on the command line.
struct InputOptions {
  std::string file;
  std::optional<uint64_t> random;
  std::vector<std::string> symbols;  // "K=16"
  std::optional<int64_t> calls;

  bool given() const { return !file.empty() || random; }
};

void add_model(CLI::App& command,
               CommandOptions& options);  // MODEL --dtype --weights --random-weights --ignore-key
void add_ignored_keys(CLI::App& command, CommandOptions& options);
void add_recompile(CLI::App& command, CommandOptions& options);
void add_compiling(CLI::App& command,
                   CommandOptions& options);  // --arch --numerics ... --stop-after
void add_phase(CLI::App& command, CommandOptions& options);
/// --ranks, of `run` and `verify`
void add_ranks(CLI::App& command, size_t& ranks);
/// --inputs --random-inputs --symbol --calls
void add_inputs(CLI::App& command, InputOptions& options);
void add_device(CLI::App& command, CommandOptions& options);
void add_streaming(CLI::App& command, CommandOptions& options);  // --kv
void add_sizes(CLI::App& command, CommandOptions& options);      // --symbol, of costs
void add_activation_memory(CLI::App& command, CommandOptions& options);
void add_prefill(CLI::App& command,
                 CommandOptions& options);  // --activation-memory --prefill-chunk
void add_routing(CLI::App& command, ExpertRouting& routing);
void add_json(CLI::App& command, CommandOptions& options);
void add_verbosity(CLI::App& command);  // -v -q

/// "K=16" each, of --symbol; a name that is given twice is an error.
Result<std::vector<std::pair<std::string, int64_t>>> parse_sizes(
    const std::vector<std::string>& texts);

/// The values of --activation-memory and --prefill-chunk.
PrefillOptions to_prefill(const CommandOptions& options);

/// Entries are left to the caller.
Result<CallsOptions> to_calls(const InputOptions& options);

/// The options' meaning; usage errors.
Result<BuildRequest> to_request(const CommandOptions& options);
/// The device of --device, with the decisions of --record. Says on stderr which it is and why.
Result<std::shared_ptr<Backend>> open_backend(const CommandOptions& options, bool tune = false);

}  // namespace sinter
