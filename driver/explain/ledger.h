// The fusion ledger: which ops share a kernel and why the others do not, as records and as reports
// for people and programs.
#pragma once

#include "driver/compile/compile.h"
#include "driver/explain/choices.h"
#include "driver/explain/relaxed_attention.h"
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
  std::string name;                 // of the kernel, else the kind
  std::string kind;                 // "kernel", "gemm" or "copy"
  std::vector<std::string> values;  // what it computes
  Bytes bytes;                      // moved
  double predicted_s = 0;           // by the cost model
  // In a stream: values that it reads before it waits for the kernels ahead of it (of caches, what
  // those do not append), and whether it triggers the next one after that.
  std::vector<std::string> early;
  bool triggers_after_wait = false;
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
  /// of it, and the bytes that it saves. They add up to the bytes of the unfused plan less those of
  /// the fused one.
  size_t merge = 0;
  std::vector<std::string> with;
  double saved_bytes = 0;
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

  size_t fusions() const;
  double saved_bytes() const;
  double predicted_s() const;
};

/// One record for each entry of the plan, or for the one that is called `only`. `relaxed`: what
/// relaxed_savings() gave; empty: nobody asked.
std::vector<EntryLedger> ledger(const Compiled& compiled, std::string_view only = {},
                                const EntrySavings& relaxed = {});
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
                        const EntrySavings& relaxed = {});
/// "prefill, N=512: 8 kernel launches, 9 GEMM calls; 7 fusions save 1.27 MB, 20 refusals; predicted
/// 162 µs".
std::string ledger_headline(const EntryLedger& ledger);
/// For a terminal: kernels by layer, equal layers once, and the refusals by reason, each with a few
/// examples; `all`: with all of them, all fusions, and what kernels read early.
std::string ledger_text(const EntryLedger& ledger, bool all);
/// Values as nodes and kernels as clusters, equal layers once, edges by bytes; for Graphviz.
std::string ledger_dot(const Compiled& compiled, std::string_view only = {});
/// One page that needs no other file.
std::string ledger_html(const Compiled& compiled, const ReportHeader& header = {});

}  // namespace sinter
