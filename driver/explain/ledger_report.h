// The fusion ledger for people and programs: which ops share a kernel, and why the others do not.
#pragma once

#include "driver/compile/compile.h"

namespace sinter {

/// A step of an entry's plan.
struct LedgerStep {
  std::string name;                 // of the kernel, else the kind
  std::string kind;                 // "kernel", "gemm" or "copy"
  std::vector<std::string> values;  // what it computes
  double bytes = 0;                 // moved, at Compiled::sizes
  // In a stream: values that it reads before it waits for the kernels ahead of it (of caches, what
  // those do not append), and whether it triggers the next one after that.
  std::vector<std::string> early;
  bool triggers_after_wait = false;
};

struct LedgerDecision {
  std::string a, b;
  bool fused = false;
  std::string reason;             // reason_id
  std::string text;               // reason_text
  std::string detail;             // the values that decided
  std::vector<std::string> path;  // what stands between, from a to b
  double saved_bytes = 0;         // fused: at Compiled::sizes
};

struct EntryLedger {
  std::string name;
  std::vector<LedgerStep> steps;
  std::vector<LedgerDecision> decisions;
};

std::vector<EntryLedger> ledger(const Compiled& compiled);
LedgerDecision decision(const Graph& graph, ValueId a, ValueId b, const Verdict& verdict);

/// fusion.json: {"entries": [{"name", "kernels": [..], "decisions": [..]}]}.
std::string ledger_json(const Compiled& compiled);
/// For a terminal: kernels by layer, equal layers once, and the refusals by reason, each with a few
/// examples; `all`: with all of them, and what kernels read early.
std::string ledger_text(const EntryLedger& ledger, bool all);
/// Kernels as clusters of values, for Graphviz.
std::string ledger_dot(const Compiled& compiled, size_t entry);
/// One page that needs no other file.
std::string ledger_html(const Compiled& compiled);

/// The layer of a value that the frontends named ("l12.norm1": 12), -1 for others.
int64_t layer_of(std::string_view value);
/// The name with `layer` in place of its own layer ("l12.norm1", "l*" -> "l*.norm1").
std::string with_layer(const std::string& value, const std::string& layer);

}  // namespace sinter
