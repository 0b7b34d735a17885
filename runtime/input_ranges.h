// Which integers may be row numbers: ids of table rows and slots of caches that kernels use as
// addresses. Those of an entry's inputs are checked before a call, and so are their truth values.
// Those that the call computes are looked at after it; its kernels have left out what names no row
// (`checked`, ir/ops.def).
#pragma once

#include "runtime/executor.h"

namespace sinter {

/// An error where an i32 input whose values name rows of an operand (`id`, `slot`, `first`, `last`,
/// `target`) points outside of that operand, and where a byte of an i1 input is neither 0 nor 1.
Status check_input_ranges(const Program& program, const EntryPlan& entry,
                          llvm::ArrayRef<int64_t> symbol_values,
                          llvm::ArrayRef<const HostTensor*> inputs);

/// An error where one of the values that a call has left for check `index` of the entry's
/// `row_checks` names no row. Executors look at the checks in order.
Status check_computed_rows(const EntryPlan& entry, size_t index,
                           llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<int32_t> values);

}  // namespace sinter
