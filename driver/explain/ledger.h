// The fusion ledger: which ops share a kernel and why the others do not, as records and as reports
// for people and programs.
#pragma once

#include "driver/compile/compile.h"
#include "driver/explain/choices.h"
#include "driver/explain/measured.h"
#include "driver/explain/relaxed_attention.h"
#include "driver/step_class.h"
#include "ir/traffic.h"

namespace sinter {

/// A value that an entry computes, or reads as it was given.
struct LedgerValue {
  std::string name;
  std::string op;              // "linear"; "input", "weight" of what is given
  std::string type;            // "f16[N, 4096]"
  std::optional<size_t> step;  // that computes it; absent: an input, a weight, a view of another
};

/// A step of an entry's plan. Bytes and times are those at Compiled::sizes.
struct LedgerStep {
  std::string name;  // of the kernel, else the kind
  std::string kind;  // "kernel", "gemm" or "copy"
  StepClass step_class = {};
  std::vector<std::string> values;  // what it computes
  Bytes bytes = {};                 // moved
  double predicted_s = 0;           // by the cost model
  std::optional<double> measured_s = {};
  std::optional<MeasuredLaunch> launch = {};  // that was measured
  // In a stream: values that it reads before it waits for the kernels ahead of it (of caches, what
  // those do not append), and whether it triggers the next one after that.
  std::vector<std::string> early;
  bool triggers_after_wait = false;

  double seconds() const { return measured_s.value_or(predicted_s); }
};

/// The read of a value in memory by a step.
struct LedgerEdge {
  std::optional<size_t> from;  // the step that computes it; absent: an input, a weight, a state
  size_t to = 0;               // the step that reads it
  std::string value;
  double bytes = 0;
};

struct LedgerDecision {
  std::string a, b;
  bool fused = false;
  std::string reason;             // reason_id
  std::string text;               // reason_text
  std::string detail;             // the values that decided
  std::vector<std::string> path;  // what stands between, from a to b
  std::string change;             // refused: what would have to change
  /// Fused: the place among the entry's fusions, from 1, the other values of the kernel that came
  /// of it, and the bytes that it saves. They add up to the unfused plan's bytes minus the fused
  /// plan's.
  size_t merge = 0;
  std::vector<std::string> with;
  double saved_bytes = 0;
  /// Refused: the time and the bytes that the plan would save if the two kernels were one launch.
  /// Below 0: it would be slower.
  double worth_s = 0, worth_bytes = 0;
  /// Refused: about values of different layers of which neither reads the other, or about a table
  /// that several layers read.
  bool unasked = false;
};

/// The refusals of one kind: the same values in different layers.
struct RefusalWorth {
  size_t first = 0;                         // in EntryLedger::decisions
  size_t count = 0;                         // of refusals
  std::pair<uint32_t, uint32_t> kernels{};  // the steps of the first
  /// The plan less the plan in which the kernels that they keep apart are one, where that is
  /// faster. Kernels that several of them keep apart count once.
  double seconds = 0, bytes = 0;
  bool unasked = false;
  bool direct = false;  // one reads the other
  std::string option;   // with which the engine puts them in one kernel; empty: none
  double option_s = 0;  // predicted to be saved by it in these kernels
};

/// The same of all refusals with one reason.
struct ReasonWorth {
  std::string reason, text;
  size_t count = 0;
  double seconds = 0, bytes = 0;
};

/// The steps of one class of work.
struct ClassCosts {
  StepClass step_class = {};
  size_t launches = 0;
  Bytes bytes = {};
  double predicted_s = 0;
  double seconds = 0;  // measured where a step was, else predicted
};

struct EntryLedger {
  size_t entry = 0;  // its place in the plan
  std::string name;
  std::string title;  // "main", of a variant "main, N in [1, 8]"
  std::string sizes;  // "N=512 K=1024", at which bytes and times are stated
  std::vector<LedgerValue> values;
  std::vector<LedgerStep> steps;
  std::vector<LedgerEdge> edges;
  std::vector<LedgerDecision> decisions;
  std::vector<LedgerChoice> choices;
  std::optional<RelaxedSavings> relaxed;  // where it was asked for
  std::vector<RefusalWorth> worths;       // by seconds, the largest first
  std::vector<ReasonWorth> reasons;       // in the order of the first refusals

  size_t fusions() const;
  double saved_bytes() const;
  double predicted_s() const;
  bool measured() const;   // some step of it
  double seconds() const;  // measured where a step was, else predicted
  /// The classes that the entry has, the largest time first. They add up to the entry's.
  std::vector<ClassCosts> classes() const;
};

/// Inputs of reports beside the compilation; all may be empty.
struct ReportInputs {
  EntrySavings relaxed = {};  // of relaxed_savings()
  MeasuredTimes measured = {};
  /// The rates that give times; absent: the target's. Decisions stay the target's.
  std::optional<DeviceDescription> board = {};
  bool advice = true;  // what refusals cost, and what would have to change
};

/// One record for each entry of the plan, or for the one that is called `only`.
std::vector<EntryLedger> ledger(const Compiled& compiled, std::string_view only = {},
                                const ReportInputs& inputs = {});
/// The saving of a fusion: "32.8 KB", or "a launch".
std::string saved_text(const LedgerDecision& fusion);
/// Without what Fusion does not know: `merge`, `with`, `saved_bytes`, `change`.
LedgerDecision decision(const Graph& graph, ValueId a, ValueId b, const Verdict& verdict);

/// The origin and the subject of a report.
struct ReportHeader {
  std::string model;    // a line about it
  std::string command;  // that made the report; empty: no command line did
  std::string only;     // the entry that it is about; empty: all
};

/// All of the records, a line for each (docs/plan.md: fusion.json).
std::string ledger_json(const Compiled& compiled, const ReportHeader& header = {},
                        const ReportInputs& inputs = {});
/// "prefill, N=512: 8 kernel launches, 9 GEMM calls; 7 fusions save 1.27 MB, 20 refusals; predicted
/// 162 µs".
std::string ledger_headline(const EntryLedger& ledger);
/// For a terminal: the refusals that matter, kernels by layer, equal layers once, and the refusals
/// by reason, where there are few kinds of them each; `all`: each of them, all fusions, and what
/// kernels read early.
std::string ledger_text(const EntryLedger& ledger, bool all);
/// Values as nodes and kernels as clusters, equal layers once, edges by bytes; for Graphviz.
std::string ledger_dot(const Compiled& compiled, std::string_view only = {});
/// Parts of the page beside the ledger.
struct PageParts {
  bool module_text = false;
  bool kernel_text = true;      // where the page stays below its largest size
  std::string comparison = {};  // comparison_json(); empty: none
};
/// One page that needs no other file (driver/page). It has no weights.
std::string ledger_html(const Compiled& compiled, const ReportHeader& header = {},
                        const ReportInputs& inputs = {}, PageParts parts = {});

}  // namespace sinter
