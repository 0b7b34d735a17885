// The work of a row kernel, and the configuration that its text is made for.
#pragma once

#include "ir/integers.h"
#include "ir/sym_expr.h"

namespace sinter {

/// The work of a row kernel, independent of its text.
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
  int64_t wide_results = 0;  // results that have more than one element of a row
  int64_t min_threads = 1;   // of a block: a power of two that the device has
  bool alone = true;         // the launch has no other blocks: a row may have a cluster
};

struct RowConfig {
  bool on_chip = true;  // elements needed again stay in registers; else every pass reads again
  int64_t threads_per_row = 1;  // power of two
  int64_t rows_per_block = 1;
  int64_t threads = 256;        // of a block: a multiple of 32
  int64_t blocks = 1;           // of a row: a cluster, whose blocks share its threads
  int64_t resident_blocks = 1;  // for which a multiprocessor must have registers at a time
  // Block b prefetches what block b + prefetch_distance reads; 0: off.
  int64_t prefetch_distance = 0;

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

}  // namespace sinter
