// Which kernels of an entry overlap, and what they read before they wait
// (kernels/common/launch.cuh).
#pragma once

#include <string>
#include <vector>

#include "codegen/lowering/extract.h"
#include "plan/program.h"

namespace sinter {

/// Whether a kernel's time is mostly latency, so that its launch should overlap others: it has an
/// op of few tokens, or no value of many elements.
bool overlaps_launches(const Graph& group, llvm::ArrayRef<Symbol> symbols);

/// One for each step of an entry, in order; `steps`: what was extracted from its graph for a
/// kernel; of a library call the outputs alone. A kernel reads early what it needs for its longest
/// work, if all of that may be read early.
std::vector<Overlap> launch_order(const Graph& graph, llvm::ArrayRef<ExtractedGroup> steps,
                                  llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
