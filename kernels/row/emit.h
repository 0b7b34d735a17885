// Kernels of rows.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>

#include <optional>

#include "codegen/emission/emit_context.h"
#include "codegen/emission/emit_group.h"
#include "codegen/emission/kernel_body.h"
#include "codegen/emission/row_config.h"

namespace sinter {

/// The configuration for a problem; nullopt: none fits the device.
using RowScheduler = llvm::function_ref<std::optional<RowConfig>(const RowProblem&)>;

/// The text of the form's rows in blocks of this form. `schedule` is asked with all that registers
/// could hold, and where that does not stay on chip, with what they must.
Result<KernelBody> emit_rows_in(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                llvm::ArrayRef<SymbolId> parameters, const BlockForm& block,
                                RowScheduler schedule);

/// The text for `rows` rows, a power of two, side by side in a block of `threads`, the first rows
/// of the form; those that it does not have are left out. Results but the first are written by the
/// first block alone. `when_read`: statements after the first loop over the rows; left out where
/// there is none.
Result<KernelBody> emit_rows_in_block(const GroupForm& form, llvm::ArrayRef<Symbol> symbols,
                                      llvm::ArrayRef<SymbolId> parameters, int64_t threads,
                                      int64_t rows, std::string_view when_read,
                                      const DeviceDescription& device);

}  // namespace sinter
