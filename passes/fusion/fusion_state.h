// The state of the fusion engine: what it is asked about, and the groups so far.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "passes/fusion/fusion.h"
#include "passes/fusion/groups.h"

namespace sinter {

struct FusionState {
  FusionState(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
              const FusionOptions& options, Families families)
      : problem(graph, symbols, device, options.numerics, families),
        options(options),
        groups(problem) {}

  const FusionProblem problem;
  const FusionOptions options;
  Groups groups;
  FusionStatistics statistics;
  /// The fusions that the engine may make, by their ops and whether they are horizontal; none: all.
  std::optional<std::set<std::tuple<ValueId, ValueId, bool>>> allowed;
  /// Places in the ledger, for Fusion::why: the refusal of two ops, the earlier first; and of a
  /// group of the grouping its last fusion with a detail.
  std::map<std::pair<uint32_t, uint32_t>, size_t> refusals;
  std::map<uint32_t, size_t> details;
};

}  // namespace sinter
