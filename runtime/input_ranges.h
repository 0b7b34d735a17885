// Which integers an entry's inputs may hold: ids of table rows and slots of caches that kernels use
// as addresses. A GPU does not check them.
#pragma once

#include "runtime/executor.h"

namespace sinter {

/// An error where an i32 input whose values name rows of an operand (`id`, `slot`, `first`, `last`)
/// points outside of that operand. Values that kernels compute are not looked at.
Status check_input_ranges(const Program& program, const EntryPlan& entry,
                          llvm::ArrayRef<int64_t> symbol_values,
                          llvm::ArrayRef<const HostTensor*> inputs);

}  // namespace sinter
