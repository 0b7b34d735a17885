// The state of the fusion engine: what it is asked about, and the groups so far.
#pragma once

#include "passes/fusion.h"
#include "passes/groups.h"

namespace sinter {

struct FusionState {
  FusionState(const Graph& graph, llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device,
              const FusionOptions& options)
      : problem(graph, symbols, device, options), groups(problem) {}

  const FusionProblem problem;
  Groups groups;
  FusionStatistics statistics;
};

}  // namespace sinter
