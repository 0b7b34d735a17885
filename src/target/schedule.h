// Problem in, kernel configuration out: pure functions.
#pragma once

#include <optional>

#include "ir/sym_expr.h"
#include "target/device.h"

namespace sinter {

/// What a row kernel has to do, independent of its text.
struct RowProblem {
  SymExpr rows;
  bool has_reduction = false;
  int64_t lanes = 1;            // V of the contract: the largest of the group's reductions
  int64_t width = 1;            // elements of the widest stage (upper bound of a symbol)
  int64_t kept_values = 0;      // element values that live across passes over the row
  int64_t kept_element_bytes = 4;
};

struct RowConfig {
  bool on_chip = true;          // rows are read once and kept in registers; else every pass reads again
  int64_t threads_per_row = 1;  // power of two <= lanes; each simulates lanes / threads_per_row lanes
  int64_t rows_per_block = 1;
  int64_t threads = 256;        // of a block
};

/// nullopt: no configuration fits the device (registers, shared memory).
std::optional<RowConfig> schedule_rows(const RowProblem& problem, llvm::ArrayRef<Symbol> symbols,
                                       const DeviceDescription& device);

}  // namespace sinter
