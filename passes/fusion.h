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
#include "ir/numerics.h"
#include "passes/verdict.h"

namespace sinter {

struct FusionOptions {
  bool enabled = true;  // false: every op is a kernel of its own
  /// Pairs of value names. required: tried first. forbidden: never in one kernel.
  std::vector<std::pair<std::string, std::string>> required, forbidden;
  int64_t stop_after = -1;  // acceptances; -1: no limit
  /// fast: an activation or a residual may join the library call of a linear.
  Numerics numerics = Numerics::strict;
};

/// What was asked and answered, in the order of the decisions: acceptances as they happened, then
/// the last refusal of every candidate that stayed refused, by op.
struct LedgerEntry {
  ValueId a, b;  // a before b
  Verdict verdict;
};

struct Fusion {
  Grouping grouping;
  std::vector<LedgerEntry> ledger;
  /// Why two values share a kernel or not: from the groups, else the filed verdict, else by asking
  /// the judge about the groups as they are.
  Verdict why(ValueId a, ValueId b) const;

  std::shared_ptr<const class FusionState> state;  // the engine at its end, for `why`
};

Fusion fuse(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
            const FusionOptions& options);

}  // namespace sinter
