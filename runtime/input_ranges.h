// Which integers may be row numbers: ids of table rows and slots of caches that kernels use as
// addresses. Numbers in an entry's inputs are checked before a call, and so are truth values.
// Numbers that the call computes are checked after it; its kernels skip numbers that name no row
// (`checked`, ir/ops.def).
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include "runtime/executable.h"

namespace sinter {

/// An error where an i32 input whose values name rows of an operand (`id`, `slot`, `first`, `last`,
/// `target`, `group`) points outside of that operand or has ends that do not ascend, and where a
/// byte of an i1 input is neither 0 nor 1.
Status check_input_ranges(const Program& program, const EntryPlan& entry,
                          llvm::ArrayRef<int64_t> symbol_values,
                          llvm::ArrayRef<const HostTensor*> inputs);

/// The input of i64, if there is one, whose elements the numbers of check `index` are casts of. An
/// element beyond i32 is its nearest number there; the input has the element itself.
std::optional<size_t> wide_input(const Program& program, const EntryPlan& entry, size_t index);

/// Element `i` of that input; nothing: there is none.
using WideNumber = llvm::function_ref<Result<std::optional<int64_t>>(size_t i)>;

/// An error where one of the values that a call has left for check `index` of the entry's
/// `row_checks` names no row, or does not ascend where they are ends. Executors look at the checks
/// in order. `wide` is asked about a value at an end of i32.
Status check_computed_rows(const EntryPlan& entry, size_t index,
                           llvm::ArrayRef<int64_t> symbol_values, llvm::ArrayRef<int32_t> values,
                           WideNumber wide = {});

}  // namespace sinter
