// Group → CUDA text.
#pragma once

#include "plan/program.h"
#include "target/schedule.h"

namespace sinter {

/// The kernel that computes `group` (inputs: roots of the reads; outputs: the results; composites
/// allowed). Every op except views and generators has the leading dims `prefix_rank` axes of the
/// group's parallel prefix. Pure: equal groups give equal text.
Result<Kernel> emit_kernel(const Graph& group, uint32_t prefix_rank,
                           llvm::ArrayRef<Symbol> symbols, const DeviceDescription& device);

}  // namespace sinter
