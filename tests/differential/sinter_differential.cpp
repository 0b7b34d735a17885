// sinter_differential: random graphs, fused against unfused, host and kernel text, bit for bit; and
// against the graphs as they were generated (source_module.h), their contractions with float64.
// Half of them first go through passes of the pipeline, one alone or several in any order.
//
//   sinter_differential --seed 0 --count 2000 --mode shim     seeds 0 .. 1999
//   sinter_differential --products own --count 3000 --mode shim    products by Sinter's own kernels
//   sinter_differential --graphs attention_gradients --count 2000 --mode shim
//   sinter_differential --seed 17 --print                     the module of a seed
//   sinter_differential --sir f.sir --symbols 3,16,2          a module from a file
//
// The build with planted faults, sinter_differential_faults, has two ways more: --fault NAME makes
// every fused plan with that fault; --every-fault asks of each fault that the graphs find it.
//
// Exit codes: 0 all equal, 2 usage, 3 something differs.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cctype>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "differential/check_case.h"
#include "differential/child_pool.h"
#include "driver/reduce/reduce.h"
#include "driver/text_table.h"
#include "ir/column_space.h"
#include "ir/grouping.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "shim/shim_compiler.h"
#include "support/custom_ops.h"

namespace sinter {
namespace {

#ifdef SINTER_PLANT_FAULTS
constexpr std::string_view kProgram = "sinter_differential_faults";
#else
constexpr std::string_view kProgram = "sinter_differential";
#endif
// Lines of the tally that the summary names.
constexpr std::string_view kComparedModules = "compared with the module itself";
constexpr std::string_view kContractions = "contractions compared with float64";
constexpr std::string_view kComparedElements = "elements of contractions within their bounds";
constexpr std::string_view kUnboundedElements = "elements of contractions without a bound";

constexpr uint64_t kSeedsPerChild = 25;      // of one child: their kernels are compiled together
constexpr uint64_t kFaultSeedsPerChild = 4;  // where the first seed that fails is the last
constexpr int kShrinkSeconds = 20;           // for one run of a smaller case

struct Options {
  uint64_t seed = 0, count = 100, data_seed = 0;
  std::string mode = "host", products, graphs, sir, fault,
              out = std::filesystem::temp_directory_path().string();
  std::vector<int64_t> symbols;
  std::vector<std::string> needs;
  int jobs = 2, shrink_tries = 300;
  size_t shrunk = 3;           // failures that are made small; the others are listed
  size_t least_ops = 0;        // of a failure that is made small
  size_t most_ops = SIZE_MAX;  // that it may have then
  Numerics numerics = Numerics::strict;
  bool print = false, no_shrink = false, every_fault = false;

  bool shim() const { return mode == "shim"; }
};

Case case_of(uint64_t seed, const Options& options) {
  return options.products == "own" ? generate_own_products(seed)
                                   : generator_of(options.graphs)(seed);
}

std::optional<Fault> parse_fault(std::string_view name) {
#define X(fault, what) \
  if (name == #fault) return Fault::fault;
  SINTER_FAULTS(X)
#undef X
  return std::nullopt;
}

std::string message(const Error& error) { return error.message(); }

/// The failure of one case; empty: it passed.
std::string check_one(const Case& test, uint64_t data_seed, const Options& options) {
  const Status valid = verify(test.module);
  if (!valid) return "the generator made an invalid module: " + message(valid.error());
  auto checked =
      check_plans(test, data_seed, options.shim(), parse_fault(options.fault), options.numerics);
  if (!checked) return message(checked.error());
  std::string what;
  if (options.shim())
    check_kernels(
        *checked, [](size_t) {},
        [&](size_t, const Status& status) {
          if (!status)
            what = "kernel text: " + status.error().what.substr(0, 2000) + " (" +
                   status.error().where + ")";
        });
  return what;
}

bool is_gemv(const Graph&, const Op& op) { return order_of(op) == Order::gemv; }

bool is_tiled_linear(const Graph&, const Op& op) { return order_of(op) == Order::tiled_linear; }

bool is_custom(const Graph&, const Op& op) { return op.kind == OpKind::custom; }

bool is_column_reduction(const Graph& group, const Op& op) {
  return op_class(op) == OpClass::reduce &&
         column_space(group[op.operands[0]].type.dims,
                      op.attrs.get<std::vector<int64_t>>(AttrName::axes));
}

/// Whether ops of a kind share their kernel with a prologue, an epilogue, both or nothing; empty:
/// the kernel has none of them.
std::string_view around(const Graph& group, bool (*is_wanted)(const Graph&, const Op&)) {
  std::vector<bool> prologue(group.size(), false);
  bool found = false, has_prologue = false, has_epilogue = false;
  for (uint32_t i = group.size(); i-- > 0;) {
    const Op& op = group.ops()[i];
    const bool wanted = is_wanted(group, op);
    if (wanted || prologue[i])
      for (ValueId operand : op.operands) prologue[operand.index] = true;
    found = found || wanted;
    if (!wanted && computes(op)) (prologue[i] ? has_prologue : has_epilogue) = true;
  }
  if (!found) return "";
  return has_prologue && has_epilogue ? "with_both"
         : has_prologue               ? "with_prologue"
         : has_epilogue               ? "with_epilogue"
                                      : "alone";
}

/// Which form of kernels/scan a kernel has; empty: none.
std::string_view scan_form(const Kernel& kernel) {
  const auto calls = [&](std::string_view name) {
    return kernel.source.find(name) != std::string::npos;
  };
  if (calls("scan_columns<")) return "columns";
  if (calls("scan_long_rows<")) return kernel.launch.cluster > 1 ? "cluster" : "block";
  return calls("scan_rows<") ? "warp" : "";
}

/// Which ops and kernels a case has, what was decided of them, how it was checked: lines "number
/// what" that the parent adds up.
std::string tally(const Case& test, const CheckedCase& checked) {
  std::string text;
  const auto add = [&](int64_t number, std::string_view what, std::string_view kind = {}) {
    text += fmt::format("{} {}{}{}\n", number, what, kind.empty() ? "" : " ", kind);
  };
  for (const Op& op : test.module.entries[0].graph.ops()) add(1, "op", algorithm_name(op));
  add(static_cast<int64_t>(checked.fused->kernels.size()), "kernels");
  for (const std::string& verdict : checked.verdicts) add(1, "verdict", verdict);
  const auto add_form = [&](std::string_view what, std::string_view kind) {
    if (!kind.empty()) add(1, what, kind);
  };
  for (const Kernel& kernel : checked.fused->kernels) {
    add_form("gemv", around(kernel.group, is_gemv));
    add_form("tiled_linear", around(kernel.group, is_tiled_linear));
    add_form("custom", around(kernel.group, is_custom));
    add_form("column", around(kernel.group, is_column_reduction));
    add_form("scan", scan_form(kernel));
  }
  if (checked.ended_outside) add(1, "ended by a row number outside");
  if (!checked.source) return text;
  if (!checked.ended_outside) add(1, kComparedModules);
  if (checked.source->contractions == 0) return text;
  add(checked.source->contractions, kContractions);
  add(checked.source->elements.compared, kComparedElements);
  add(checked.source->elements.unbounded, kUnboundedElements);
  return text;
}

void work(uint64_t first, uint64_t last, ItemReport& report, const Options& options) {
  std::vector<CheckedCase> cases;
  std::vector<uint64_t> seeds;
  for (uint64_t seed = first; seed < last; ++seed) {
    report.begin(seed);
    const Case test = case_of(seed, options);
    const Status valid = verify(test.module);
    if (!valid) {
      report.failed(seed, "the generator made an invalid module: " + message(valid.error()));
      continue;
    }
    auto checked =
        check_plans(test, seed, options.shim(), parse_fault(options.fault), options.numerics);
    if (!checked) {
      report.failed(seed, message(checked.error()));
      continue;
    }
    report.note(seed, tally(test, *checked));
    cases.push_back(std::move(*checked));
    seeds.push_back(seed);
  }
  if (!options.shim()) return;
  check_kernels(
      cases, [&](size_t i) { report.begin(seeds[i]); },
      [&](size_t i, const Status& status) {
        if (!status)
          report.failed(seeds[i], "kernel text: " + status.error().what.substr(0, 2000) + " (" +
                                      status.error().where + ")");
      });
}

std::string flags(const Options& options) {
  return fmt::format("--mode {}{}{}{}{}", options.mode,
                     options.products.empty() ? "" : " --products " + options.products,
                     options.graphs.empty() ? "" : " --graphs " + options.graphs,
                     options.numerics == Numerics::fast ? " --fast" : "",
                     options.fault.empty() ? "" : " --fault " + options.fault);
}

/// A failure's first words, without numbers: what a smaller case must fail with too.
std::string kind_of(const std::string& what) {
  constexpr size_t kLetters = 20;
  std::string kind;
  for (char c : what)
    if (std::isalpha(static_cast<unsigned char>(c)) && kind.size() < kLetters) kind += c;
  return kind;
}

/// The smallest case that fails.
Case smallest_case(const Case& test, int tries, const std::function<bool(const Case&)>& fails) {
  ReduceOptions options;
  options.tries = tries;
  const auto case_of_module = [&](const Reducible& smaller) {
    return Case{smaller.module, smaller.symbol_values, test.recipe};
  };
  auto reduced = reduce(
      {test.module, test.symbol_values},
      [&](const Reducible& smaller) { return fails(case_of_module(smaller)); }, options);
  SINTER_CHECK(reduced.has_value(), "{}", reduced.error().message());
  return case_of_module(*reduced);
}

/// Writes the smallest case found that still fails in that way, and says how to run it. Returns the
/// number of its ops.
size_t shrink_and_print(uint64_t seed, const std::string& failure, const Options& options) {
  const Case smallest =
      smallest_case(case_of(seed, options), options.shrink_tries, [&](const Case& test) {
        const auto run = [&] { return check_one(test, seed, options); };
        return kind_of(run_in_child(run, kShrinkSeconds)) == kind_of(failure);
      });
  const std::string path = fmt::format("{}/seed-{}.sir", options.out, seed);
  std::ofstream(path, std::ios::binary) << print_module(smallest.module);
  const std::string what =
      run_in_child([&] { return check_one(smallest, seed, options); }, kShrinkSeconds);
  fmt::print("{}  shrunk to {}: {}\n  replay: {} --sir {} --symbols {} --data-seed {} {}{}\n",
             print_module(smallest.module), counted(size_of(smallest.module).ops, "op"), what,
             kProgram, path, fmt::join(smallest.symbol_values, ","), seed, flags(options),
             smallest.recipe == Recipe() || !options.products.empty() ? "" : " --products own");
  return size_of(smallest.module).ops;
}

/// How often something occurs, and in how many graphs.
struct Occurrences {
  uint64_t count = 0, graphs = 0;
  void add(uint64_t more) { count += more, graphs += more > 0 ? 1 : 0; }
};
using Tally = std::map<std::string, Occurrences>;

/// The seeds that fail. With a fault: those that pass without it.
std::map<uint64_t, std::string> find_failures(const Options& options, bool stop_at_first,
                                              Tally& tallied) {
  std::map<uint64_t, std::string> failed;
  Options sound = options;
  sound.fault.clear();
  PoolEvents events;
  events.failed = [&](uint64_t seed, const std::string& what) {
    if (failed.contains(seed)) return;
    if (!options.fault.empty() &&
        !run_in_child([&] { return check_one(case_of(seed, options), seed, sound); },
                      kShrinkSeconds)
             .empty())
      return;
    failed[seed] = what;
  };
  events.note = [&](uint64_t, const std::string& text) {
    std::istringstream lines(text);
    std::map<std::string, uint64_t> counts;
    uint64_t number = 0;
    for (std::string what; lines >> number && std::getline(lines >> std::ws, what);)
      counts[what] += number;
    for (const auto& [what, count] : counts) tallied[what].add(count);
  };
  events.progress = [&](uint64_t done) {
    if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r{} of {} graphs", done, options.count);
    return !(stop_at_first && !failed.empty());
  };
  run_in_children(
      options.seed, options.count, stop_at_first ? kFaultSeedsPerChild : kSeedsPerChild,
      options.jobs,
      [&](uint64_t first, uint64_t last, ItemReport& report) {
        work(first, last, report, options);
      },
      events);
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\n");
  return failed;
}

int run_seeds(const Options& options) {
  Tally tallied;
  const auto begin = std::chrono::steady_clock::now();
  const auto failed = find_failures(options, false, tallied);
  for (const auto& [seed, what] : failed)
    fmt::print("seed {}: {}\n  replay: {} --seed {} --count 1 {}\n", seed, what, kProgram, seed,
               flags(options));
  size_t shrunk = 0, large = 0;
  double longest = 0;
  for (const auto& [seed, what] : failed) {
    const size_t ops = size_of(case_of(seed, options).module).ops;
    if (options.no_shrink || shrunk == options.shrunk) break;
    if (ops < options.least_ops) continue;
    ++shrunk;
    fmt::print("seed {}, {}\n", seed, counted(ops, "op"));
    const auto start = std::chrono::steady_clock::now();
    large += shrink_and_print(seed, what, options) > options.most_ops ? 1 : 0;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    longest = std::max(longest, taken.count());
  }
  if (options.most_ops != SIZE_MAX) {
    fmt::print("{} of {} shrunk modules have more than {}, {:.1f} s for the slowest\n", large,
               shrunk, counted(options.most_ops, "op"), longest);
    return large == 0 && shrunk == options.shrunk ? 0 : 3;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  const auto found = [&](std::string_view what) {
    const auto at = tallied.find(std::string(what));
    return at == tallied.end() ? Occurrences() : at->second;
  };
  fmt::print(
      "{} graphs, {} failed, {:.1f} s; {} compared with the module itself, of {} of them {} "
      "contractions with float64: {} elements, and {} without a bound\n",
      options.count, failed.size(), seconds.count(), found(kComparedModules).graphs,
      found(kContractions).graphs, found(kContractions).count, found(kComparedElements).count,
      found(kUnboundedElements).count);
  fmt::print("{:>10}  {:>9}\n", "number", "of graphs");
  for (const auto& [what, number] : tallied)
    fmt::print("{:>10}  {:>7.1f} %  {}\n", number.count,
               100.0 * static_cast<double>(number.graphs) / static_cast<double>(options.count),
               what);
  bool complete = true;
  for (const std::string& need : options.needs)
    if (!tallied.contains(need)) {
      complete = false;
      fmt::print("no graph has: {}\n", need);
    }
  return failed.empty() && complete ? 0 : 3;
}

#ifdef SINTER_PLANT_FAULTS
/// Every fault must show: on the host, where graphs are cheap, else from kernel text.
int run_every_fault(Options options) {
  static constexpr std::string_view kNames[] = {
#define X(fault, what) #fault,
      SINTER_FAULTS(X)
#undef X
  };
  int missed = 0;
  for (std::string_view name : kNames) {
    options.fault = name;
    Tally tallied;
    std::map<uint64_t, std::string> found;
    options.mode = "host";
    found = find_failures(options, true, tallied);
    if (found.empty()) {
      options.mode = "shim";
      found = find_failures(options, true, tallied);
    }
    if (found.empty()) {
      fmt::print("{}: not found in {} graphs\n", name, options.count);
      ++missed;
    } else {
      const auto& [seed, what] = *found.begin();
      fmt::print("{}: seed {}, mode {}: {}\n", name, seed, options.mode, what.substr(0, 300));
    }
    std::fflush(stdout);
  }
  return missed == 0 ? 0 : 3;
}
#endif

int run_file(const Options& options) {
  std::ifstream file(options.sir, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  test::register_custom_ops();
  auto module = parse_module(text.str(), options.sir);
  if (!module) {
    fmt::print(stderr, "{}\n", module.error().message());
    return 4;
  }
  if (module->entries.empty() || options.symbols.size() != module->symbols.size()) {
    fmt::print(stderr, "{}: --symbols has {} values for {} symbols\n", options.sir,
               options.symbols.size(), module->symbols.size());
    return 2;
  }
  const std::string what =
      check_one({std::move(*module),
                 options.symbols,
                 {.products = options.products == "own" ? Recipe::Products::own
                                                        : Recipe::Products::automatic}},
                options.data_seed, options);
  fmt::print("{}\n", what.empty() ? "equal" : what);
  return what.empty() ? 0 : 3;
}

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Random graphs, fused against unfused, bit for bit");
  app.add_option("--seed", options.seed, "first seed");
  app.add_option("--count", options.count, "seeds");
  app.add_flag_callback(
      "--fast", [&] { options.numerics = Numerics::fast; },
      "fast numerics: plans are run, and kernel text is compared with the host");
  app.add_option("--mode", options.mode, "host: plans on the host; shim: also kernel text")
      ->check(CLI::IsMember({"host", "shim"}));
  app.add_option("--products", options.products,
                 "own: graphs of products by Sinter's own kernels, with their epilogues")
      ->check(CLI::IsMember({"own"}));
  app.add_option(
         "--graphs", options.graphs,
         "attention_gradients: graphs around gradients of attention; quantized: graphs with "
         "quantized matrices")
      ->check(CLI::IsMember({std::string(kGradientGraphs), std::string(kQuantizedGraphs)}));
  app.add_option("--needs", options.needs, "lines of the tally that must not be missing")
      ->delimiter(',');
  app.add_option("--sir", options.sir, "a module instead of seeds");
  app.add_option("--symbols", options.symbols, "its symbols' values")->delimiter(',');
  app.add_option("--data-seed", options.data_seed, "its data");
#ifdef SINTER_PLANT_FAULTS
  app.add_option("--fault", options.fault, "a planted fault that fused plans are made with");
  app.add_flag("--every-fault", options.every_fault, "find each planted fault");
#endif
  app.add_option("--out", options.out, "folder for shrunk modules");
  app.add_option("--jobs", options.jobs, "processes")->check(CLI::PositiveNumber);
  app.add_option("--shrink-tries", options.shrink_tries, "runs of smaller modules");
  app.add_flag("--no-shrink", options.no_shrink);
  app.add_option("--shrunk", options.shrunk, "failures that are made small");
  app.add_option("--least-ops", options.least_ops, "of a failure that is made small");
  app.add_option("--most-ops", options.most_ops,
                 "fails unless as many as --shrunk were made small, each to at most so many ops");
  app.add_flag("--print", options.print, "print the module of --seed and its symbols' values");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  if (!options.fault.empty() && !parse_fault(options.fault)) {
    fmt::print(stderr, "no fault is called {}\n", printable(options.fault));
    return 2;
  }
  if (options.print) {
    const Case test = case_of(options.seed, options);
    fmt::print("{}// symbols {}\n", print_module(test.module), fmt::join(test.symbol_values, ","));
    return 0;
  }
  // Children that are killed leave files behind; all go with this folder.
  const ScratchFolder folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  if (options.shim() || options.every_fault)
    if (const Status ready = KernelShim::prepare(); !ready) {
      fmt::print(stderr, "{}\n", message(ready.error()));
      return 1;
    }
#ifdef SINTER_PLANT_FAULTS
  if (options.every_fault) return run_every_fault(options);
#endif
  return options.sir.empty() ? run_seeds(options) : run_file(options);
}

}  // namespace
}  // namespace sinter

int main(int argc, char** argv) { return sinter::run(argc, argv); }
