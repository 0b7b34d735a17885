#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/write_output.h"
#include "driver/profile/report.h"

namespace sinter {
namespace {

struct ProfileCommand : CommandOptions {
  std::optional<int64_t> context, prompt;
  int64_t count = 16, batch = 1;
  uint64_t seed = 1;
  ExpertRouting routing = ExpertRouting::random;
  std::vector<std::string> symbols;
  std::string trace, html;
  bool tune = false;
};

Result<ProfileOptions> profile_options(const ProfileCommand& options) {
  ProfileOptions profiling;
  profiling.phase = options.phase;
  profiling.context = options.context;
  profiling.prompt = options.prompt;
  profiling.batch = options.batch;
  profiling.tuned = options.tune;
  profiling.count = options.count;
  profiling.seed = options.seed;
  profiling.routing = options.routing;
  SINTER_LET(symbols, parse_sizes(options.symbols));
  profiling.symbols = std::move(symbols);
  return profiling;
}

Status profile_command(const ProfileCommand& options) {
  SINTER_LET(profiling, profile_options(options));
  CommandOptions building = options;
  building.phase.clear();  // the phase is what runs; all entries are compiled
  SINTER_LET(request, to_request(building));
  SINTER_LET(backend, open_backend(options, options.tune));
  profiling.backend = backend;
  profiling.compile = request.compile;
  request.load.sequences = std::max(options.batch, kUsualSequences);
  SINTER_LET(model, open_model(request.path, request.load));
  for (const std::string* output : {&options.html, &options.trace})
    SINTER_TRY(check_output(*output));
  SINTER_LET(profiled, profile(model, profiling));
  // Files come last: what was printed stands even if they cannot be written.
  print_result(options.json ? profile_json(profiled) : profile_text(profiled));
  if (!options.html.empty()) SINTER_TRY(write_output("page", options.html, profile_html(profiled)));
  if (!options.trace.empty())
    SINTER_TRY(write_output("trace", options.trace, profile_trace(profiled)));
  return {};
}

}  // namespace

void add_profile(CLI::App& program, Action& action) {
  CLI::App& command = *program.add_subcommand(
      "profile", "where the time of a token goes on a GPU, kernel by kernel");
  auto options = std::make_shared<ProfileCommand>();
  add_model(command, *options);
  add_recompile(command, *options);
  command
      .add_option("--phase", options->phase,
                  "a language model's decode (the default) or prefill, or a module's entry")
      ->type_name("NAME");
  add_integer(command, "-d", options->context,
              "tokens in the cache before; decode: 1024 or what fits, prefill: 0", kNotNegative);
  add_integer(command, "-p", options->prompt, "tokens of a prefill; 512 or what fits", kPositive);
  add_integer(command, "-n", options->count, "tokens or calls that are measured",
              IntegerRange<int64_t>{1, 1000})
      ->capture_default_str();
  add_integer(command, "--batch", options->batch, "sequences that a language model decodes",
              IntegerRange<int64_t>{1, 1024})
      ->capture_default_str();
  add_integer(command, "--seed", options->seed, "of random tokens or inputs and the routing")
      ->capture_default_str();
  add_routing(command, options->routing);
  command.add_option("--symbol", options->symbols, "a module's size; repeatable")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--trace", options->trace,
                  "write a timeline for ui.perfetto.dev or chrome://tracing")
      ->type_name("FILE");
  command
      .add_option("--html", options->html,
                  "write a page: time by kernel and by class, a roofline, launches on a time line")
      ->type_name("FILE");
  command.add_flag("--tune", options->tune,
                   "choose the fastest implementation of each matrix product by timing, and the "
                   "forms of decoding kernels");
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  add_verbosity(command);
  command.callback(
      [options, &action] { action = [options] { return profile_command(*options); }; });
}

}  // namespace sinter
