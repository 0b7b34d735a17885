// The state of the fusion engine: what it is asked about, and the groups so far.
#pragma once

#include <optional>
#include <set>
#include <tuple>

#include "passes/fusion.h"
#include "passes/groups.h"

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
};

}  // namespace sinter
