#include <llvm/ADT/STLExtras.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/commands.h"
#include "cli/integer_options.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/write_output.h"
#include "driver/bench/report.h"

namespace sinter {
namespace {

struct BenchCommand : CommandOptions {
  std::vector<IntegerList<int64_t>> prompts;
  int64_t context = 0;  // 0: not given
  std::vector<std::string> symbols;
  std::string save_record, against, html;
  bool tune = false, markdown = false, csv = false;
  BenchOptions bench;
};

Result<BenchOptions> bench_options(const BenchCommand& options) {
  BenchOptions bench = options.bench;
  if (options.no_fuse)
    return fail("a benchmark measures the fused plan beside the unfused one", "--no-fuse",
                "leave it out", ExitCode::usage);
  SINTER_LET(request, to_request(options));
  bench.load = request.load;
  bench.load.sequences = std::max(bench.batch, kUsualSequences);
  bench.compile = request.compile;
  if (!options.prompts.empty()) bench.prompts.emplace();
  for (const auto& prompts : options.prompts) llvm::append_range(*bench.prompts, prompts);
  if (options.context > 0) bench.context = options.context;
  SINTER_LET(symbols, parse_sizes(options.symbols));
  bench.symbols = std::move(symbols);
  bench.on_stage = [](const std::string& text) { progress(text); };
  return bench;
}

Status bench_command(const BenchCommand& options) {
  std::optional<SavedBench> against;
  if (!options.against.empty()) {
    SINTER_LET(saved, read_bench(options.against));
    against = std::move(saved);
  }
  SINTER_LET(bench_with, bench_options(options));
  SINTER_LET(backend, open_backend(options, options.tune));
  for (const std::string* output : {&options.html, &options.save_record})
    SINTER_TRY(check_output(*output));
  bench_with.backend = backend;
  bench_with.tuned = options.tune;
  SINTER_LET(report, bench(options.model, bench_with));
  const SavedBench* there = against ? &*against : nullptr;
  print_result(options.json       ? bench_json(report)
               : options.markdown ? bench_markdown(report, there)
               : options.csv      ? bench_csv(report, there)
                                  : bench_text(report));
  if (there && !options.json && !options.markdown && !options.csv)
    print_result("\n" + bench_against_text(report, *there));
  if (!options.html.empty())
    SINTER_TRY(write_output("page", options.html, bench_html(report, there)));
  if (!options.save_record.empty())
    SINTER_TRY(write_output("record", options.save_record, backend->record().to_json()));
  return {};
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  CLI::App& command =
      *program.add_subcommand("bench", "time the fused plan beside the unfused one on a GPU");
  auto options = std::make_shared<BenchCommand>();
  BenchOptions& bench = options->bench;
  add_model(command, *options);
  add_recompile(command, *options);
  add_integer_lists(command, "-p", options->prompts,
                    "tokens of a prefill, several with commas; 0: none; usually 512,2048",
                    kNotNegative)
      ->type_name("N");
  add_integer(command, "-n", bench.tokens, "tokens that a sample decodes; 0: no decoding",
              kNotNegative)
      ->capture_default_str();
  add_integer(command, "-d", options->context, "tokens in the cache before them; usually 1024",
              kPositive);
  add_integer(command, "--batch", bench.batch, "sequences", kPositive)->capture_default_str();
  command
      .add_option("--symbol", options->symbols,
                  "a module's size; repeatable; others are at their least")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  add_integer(command, "--repeat", bench.repeat, "samples of each plan", kPositive)
      ->capture_default_str();
  add_integer(command, "--seed", bench.seed, "of tokens, inputs and the routing")
      ->capture_default_str();
  add_routing(command, bench.routing);
  command.add_flag("--kernels", bench.kernels,
                   "say where a token of the fused plan goes, as `profile` does (needs CUPTI)");
  command.add_flag(
      "--tune", options->tune,
      "choose by timing: the fastest implementation of each matrix product, and the form in which "
      "products of few tokens stream their weights, by the time of a decoded token");
  command.add_option("--save-record", options->save_record, "write the decisions that were made")
      ->type_name("FILE");
  command
      .add_option("--against", options->against,
                  "what `bench --json` printed of another version, device or plan: its medians "
                  "stand beside those of the same cases")
      ->type_name("FILE");
  command.add_option("--html", options->html, "write the figures as a page, too")
      ->type_name("FILE");
  CLI::Option* markdown =
      command.add_flag("--markdown", options->markdown, "the cases as a table of Markdown");
  CLI::Option* csv = command.add_flag("--csv", options->csv, "the cases as CSV, times in seconds");
  csv->excludes(markdown);
  add_compiling(command, *options);
  add_device(command, *options);
  add_json(command, *options);
  for (CLI::Option* form : {markdown, csv}) form->excludes("--json");
  add_verbosity(command);
  command.callback([options, &action] { action = [options] { return bench_command(*options); }; });
}

}  // namespace sinter
