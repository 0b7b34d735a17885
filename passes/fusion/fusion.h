// The fusion engine: which ops share a kernel, and why the others do not.
//
//   %res1  = add %embed, %l0.attn_out          kernel 1: add, rms_norm, two results
//   %norm2 = rms_norm %res1, %w           =>
//   %up    = linear %norm2, %w2                call  2
//
// Requires a verified graph without `attention` (expand_attention) whose outputs are computed
// (materialize). Leaves the graph unchanged; the result is a Grouping and the ledger.
#pragma once

#include <memory>

#include "device/device.h"
#include "ir/grouping.h"
#include "ir/verdict.h"
#include "kernels/registry.h"
#include "passes/fusion/fusion_options.h"

namespace sinter {

/// A question and its answer. The ledger has the order of the decisions: acceptances as they
/// happened, then the last refusal of every candidate that stayed refused, by op.
struct LedgerEntry {
  ValueId a, b;  // a before b
  Verdict verdict;
};

struct FusionStatistics {
  int64_t judged = 0;    // questions that the engine asked
  int64_t accepted = 0;  // of them, answered by a fusion
  int64_t possible = 0;  // fusions without `only` and `stop_after`
};

struct Fusion {
  Grouping grouping;
  std::vector<LedgerEntry> ledger;
  FusionStatistics statistics;
  /// Why two values share a kernel or not: from the groups, else the filed verdict, else by asking
  /// the judge about the groups as they are.
  Verdict why(ValueId a, ValueId b) const;

  std::shared_ptr<const struct FusionState> state;  // the engine at its end, for `why`
};

/// `families`: what kernels there are.
Fusion fuse(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
            const FusionOptions& options, Families families = kernel_families());

}  // namespace sinter
