// Ops that anybody may compute become ops of kernel families that take their shapes:
//
//   %y = linear %x, %w, %b                    x [N, K], N <= 8, w a weight
//   =>
//   %y = gemv %x, %w, %b {splits = 1}
//
// The families are asked in the order of the registry; the first that takes an op has it.
#pragma once

#include "ir/graph.h"

namespace sinter {

/// Families whose names are in `left_out` are not asked. True if something changed.
bool choose_kernels(Module& module, llvm::ArrayRef<std::string> left_out = {});

}  // namespace sinter
