// Which kernels of an entry overlap, and what they read before they wait
// (kernels/common/launch.cuh).
#pragma once

#include <string>
#include <vector>

#include "codegen/extract.h"
#include "plan/program.h"

namespace sinter {

/// Whether a kernel's time is mostly latency, so that its launch should overlap others: it has an
/// op of few tokens, or no value of many elements.
bool overlaps_launches(const Graph& group, llvm::ArrayRef<Symbol> symbols);

/// The matvec's operand is what stands in memory: nothing in the group computes it, and it is
/// dense.
bool has_direct_operand(const Graph& group, ValueId anchor);

/// The values of a group that are computed for its matvec's operand, the operand and what it is
/// computed from among them, and their roundings to be stored; by value.
std::vector<bool> matvec_front(const Graph& group, ValueId anchor);

/// One for each step of an entry, in order; `steps`: what was extracted from its graph for a
/// kernel; of a library call the outputs alone. A kernel reads early what it needs for its longest
/// work, if all of that may be read early.
std::vector<Overlap> launch_order(const Graph& graph, llvm::ArrayRef<ExtractedGroup> steps,
                                  llvm::ArrayRef<Symbol> symbols);

/// The statements with which a kernel that waits does so.
std::string wait_text(const Overlap& overlap);

}  // namespace sinter
