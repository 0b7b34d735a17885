// Which fusions of a plan change a result: first whether it is fusion at all, or the choice of
// orders and kernels, then which of the fusions, and a module of their kernels alone that fails.
#pragma once

#include "driver/bisect/plan_runs.h"
#include "driver/bisect/search.h"
#include "driver/check_command.h"
#include "driver/ready_plan.h"

namespace sinter {

struct BisectOptions {
  std::shared_ptr<Backend> backend;
  CompileOptions compile;
  RunsOptions runs;

  // A plan without a reference, a command and a time is wrong where a value that it stores, an
  // output or a state is not the unfused plan's, bit for bit.
  /// Right results: of a module the outputs of each entry's last call; of a language model what
  /// ReferenceFile describes, for float32.
  std::string reference;
  std::optional<double> max_error;  // absolute, of the reference; absent: what `verify` allows
  /// Gets the folder of a plan and ends with 0 where it is right. Empty: no command.
  CheckCommand check;

  /// On a GPU: a plan is wrong where a call of an entry takes more than this many times as long as
  /// the unfused plan's: 1 or more. Results are not looked at.
  std::optional<double> slower_than;

  /// Runs of the plan that seems right before it is called so: a fault may show only now and then.
  int64_t repeats = 20;
  int64_t jobs = 1;    // plans that are checked side by side
  std::string state;   // a file of answers, so that a search can go on; empty: none
  std::string output;  // the folder for reproducers; empty: none
  /// Told what is done next; false ends the search with an error.
  std::function<bool(const std::string&)> progress;
  /// Tests: the program that runs in place of a plan's own, asked before every run.
  std::function<std::shared_ptr<const Program>(const Compiled&)> planted;
};

/// A fusion by its number, and the values by which the engine asked for it.
struct NumberedFusion {
  int64_t number = 0;
  size_t entry = 0;   // of the frozen module
  std::string title;  // the entry's
  std::string a, b;
  bool horizontal = false;
};

/// A folder with a module of the guilty kernels alone.
struct Reproducer {
  std::string folder;
  std::string command;  // that shows the fault
  uint64_t input_bytes = 0, weight_bytes = 0, model_weight_bytes = 0;
  bool fails = false;  // it was run, fused and unfused
  std::string difference;
};

/// Fusions that fail together.
struct GuiltyFusions {
  std::vector<NumberedFusion> fusions;
  std::vector<std::string> ops;  // of their kernels
  std::optional<ElementDifference> difference;
  /// How the plan fails where no element tells: it does not run, it is too far from the reference,
  /// or a call takes too long.
  std::string failure;
  std::optional<Reproducer> reproducer;
};

struct BisectReport {
  enum class Verdict : uint8_t {
    right,   // the fused plan is not wrong
    fusion,  // it is, and the unfused one is not
    choice,  // both are, and with other orders or kernels neither is
    other,   // both are, whatever the choice
  };
  Verdict verdict = Verdict::right;
  std::string choice;  // "--attention composed": with it the plan is right
  std::vector<GuiltyFusions> guilty;
  int64_t fusions = 0;  // of the plan
  int64_t checks = 0;   // plans that were judged
  int64_t runs = 0;     // of them
  int64_t known = 0;    // answers of an earlier search
  /// A fault that shows in some runs alone: in `wrong_runs` of `sampled_runs`. Each plan was run
  /// `runs_each` times before it was called right.
  bool flaky = false;
  int64_t wrong_runs = 0, sampled_runs = 0, runs_each = 1;
};

/// Errors: as compiling and running the unfused plan; a reference without an output; a state file
/// of another search (ExitCode::usage). A fused plan that cannot be made or run is wrong.
Result<BisectReport> bisect(const OpenedModel& model, const BisectOptions& options);

/// For people, and as JSON. `with_text`: the JSON has the text as a member too.
std::string bisect_text(const BisectReport& report);
std::string bisect_json(const BisectReport& report, bool with_text = false);

}  // namespace sinter
