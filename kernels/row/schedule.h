// The configuration of a row kernel: pure functions of the problem and the device.
#pragma once

#include <optional>

#include "codegen/emission/row_config.h"
#include "device/device.h"

namespace sinter {

/// True if the rows fill a device: what counts is how much memory they move, not how long one
/// takes.
bool has_many_rows(const SymExpr& rows, llvm::ArrayRef<Symbol> symbols);

/// nullopt: no configuration fits the device (threads, shared memory).
std::optional<RowConfig> schedule_rows(const RowProblem& problem, llvm::ArrayRef<Symbol> symbols,
                                       const DeviceDescription& device);

/// Rows side by side in a block of `threads` that shares its multiprocessor with another; both are
/// powers of two, with at least a warp for each row.
RowConfig schedule_rows_in_block(const RowProblem& problem, int64_t threads, int64_t rows,
                                 const DeviceDescription& device);

}  // namespace sinter
