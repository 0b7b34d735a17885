// Problem in, kernel configuration out: pure functions.
#pragma once

#include <optional>
#include <vector>

#include "device/device.h"
#include "ir/matvec_ring.h"
#include "ir/sym_expr.h"

namespace sinter {

/// a / b, rounded up; neither is negative.
constexpr int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/// What a row kernel has to do, independent of its text.
struct RowProblem {
  /// Elements of a row that are walked together; a row has one such stage or several.
  struct Stage {
    int64_t lanes = 0;   // V of the contract for the stage's reductions; 0: it has none
    int64_t chunks = 0;  // of 8 elements, in the longest row
    // Bytes an element that live at once from one pass over the row to a later one.
    int64_t kept_bytes = 0;
    bool symbolic = false;  // the length is known at the launch only
  };
  SymExpr rows;
  llvm::SmallVector<Stage, 2> stages;
  int64_t reductions = 1;
  int64_t least_threads = 1;  // of a block: a power of two that the device has
};

struct RowConfig {
  bool on_chip = true;  // elements needed again stay in registers; else every pass reads again
  int64_t threads_per_row = 1;  // power of two
  int64_t rows_per_block = 1;
  int64_t threads = 256;  // of a block: a multiple of 32

  /// Threads of a row that walk a stage of `lanes` virtual lanes, each simulating lanes / owners of
  /// them. Where a stage has fewer lanes than the row threads, threads with equal remainder by
  /// `owners` do the same work and one of them stores.
  int64_t owners(int64_t lanes) const {
    return lanes == 0 || lanes > threads_per_row ? threads_per_row : lanes;
  }
  /// Chunks of a stage that one thread walks.
  int64_t chunks_per_thread(const RowProblem::Stage& stage) const {
    return ceil_div(stage.chunks, owners(stage.lanes));
  }
};

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

/// How a matvec kernel streams its matrix; kernels/gemv/matvec_stream.cuh says what the fields
/// mean.
struct MatvecConfig {
  int64_t warps = 16;
  int64_t piece = 1024;                     // elements
  int64_t stages = 4;                       // the most pieces of a warp in flight
  int64_t shared_bytes = 0;                 // the most of a block
  int64_t ring_bytes = 0, token_bytes = 0;  // what it wants: those, and these for each token
  int64_t operand_bytes = 0;  // the most of the operand that may stand in shared memory
  int64_t blocks = 1;
};
/// Bytes of shared memory that a matvec's operand may take: what is left keeps enough of the matrix
/// in flight.
int64_t matvec_operand_limit(const DeviceDescription& device);
/// The product with rows r, r + rows / units, ... in one block. nullopt: the sums of its tokens do
/// not fit the device's shared memory, or `ring` (null: the schedule's own choice) does not fit
/// them, the row or the device.
std::optional<MatvecConfig> schedule_matvec(const MatvecProduct& product, int64_t units,
                                            const DeviceDescription& device,
                                            const MatvecRing* ring = nullptr);

/// Forms of a product's ring worth measuring, the schedule's own first; all fit the product without
/// neighbours. Empty: the device has no rings, or the product does not fit it.
std::vector<MatvecRing> matvec_ring_candidates(const MatvecProduct& product,
                                               const DeviceDescription& device);

}  // namespace sinter
