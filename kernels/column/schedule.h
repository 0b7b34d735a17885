// The form of a column reduction's kernel: problem in, configuration out.
//
// A thread has 8 neighbouring columns, 16 bytes of a two-byte type, and a run of neighbouring
// virtual lanes (ir/reduction_order.h), whose elements it walks in order, 8 rows' loads at a time.
// A butterfly whose strides ascend is a balanced tree over neighbouring lanes: an aligned run of
// 2^k of them combines by itself, wherever the runs are. So all splits of the V lanes into
//
//   V = segments (blocks of a cluster) x runs (of a block) x lanes (of a thread)
//
// give the same bits, and the split follows the device alone.
//
// To keep an H200's memory busy takes about 40 KiB in flight on each of its 132 multiprocessors:
// 8 rows of 16 bytes are 128 bytes a thread, so that 320 threads suffice while all have loads under
// way. They do not always, between loads and sums. A multiprocessor holds 768 threads
// (resident_threads), and the grid has the most threads that all run at once: the last blocks of a
// grid that is a little larger would run alone. A tile of 64 columns of two bytes reads 128 bytes
// of each row, a line of the cache. [16384, 4096] has 64 such tiles and 1024 lanes: with 8 chunks x
// 32 runs of 8 lanes a block, a cluster's 4 blocks share a tile, 256 blocks of 256 threads, 94 % of
// a copy's speed on an H200; with 8 blocks for a tile 77 %. Devices without clusters take up to
// 1024 threads for a tile, and then tiles as narrow as a sector, 32 bytes.
//
// A kernel that also stores a result for every element, such as an activation's gradient with the
// sum that is the gradient of a bias, computes more for each row that it loads. Its blocks of 512
// threads have a multiprocessor each, so that 128 registers hold the loads of the next rows, and
// tiles of 256 bytes of a row. [32768, 3072] of bf16, GELU's gradient, two operands and a result,
// on an H200 (adding the operands takes 139 us): 212 us; by the forms above 308 us, and with tiles
// of 128 bytes, blocks of 512 threads and clusters of 2, 4 and 8: 225, 231 and 244.
//
// Few rows have few of those blocks: the same gradient of [2048, 4608] has 72 for 132
// multiprocessors. There, blocks of 128 or 256 threads with one or two lanes each, which 80
// registers hold, are taken where all of them run at once and fill a larger part of their places.
// One H100, us, blocks of 512 threads and those:
//   [2048, 4608] 29.8, 22.8   [1024, 4608] 17.0, 13.5   [4096, 2304] 30.3, 23.9
//   not taken: [2048, 3072] 18.2, 18.2   [2048, 6144] 32.6, 36.0   [4096, 3072] 33.4, 37.8
//
// A cluster has a place only inside one graphics processing cluster, whose multiprocessors are not
// always a multiple of its blocks. An H200 with three blocks on each of 132 multiprocessors runs 45
// clusters of 8 and 92 of 4 at once, not 49 and 99. The 48 clusters of 8 of that GELU's gradient
// were 3 too many: those began when the others had ended.
//
// Where a thread has one lane, of few rows, a block soon ends: twice as many blocks have half the
// columns each, unless there are 512 threads for each multiprocessor already. One H100, before and
// after: a sum of bf16 [4096, 768] 8.2 and 7.5 us, two sums of f32 22.5 and 20.8, two sums of bf16
// and f32 [8, 256, 1152] 10.7 and 9.8. Of more threads, two sums of [32768, 768]: 60 and 75.
//
// Several sums, or wide operands, leave room for 512 threads. Half a grid that fills them is too
// little, and one that just fills them leaves clusters without a place: there, the grid has 768
// threads for each multiprocessor or more, and runs in parts (two sums of bf16: 80 %, with half as
// many blocks 68 %).
#pragma once

#include <optional>

#include "device/device.h"
#include "ir/sym_expr.h"

namespace sinter {

struct ColumnProblem {
  SymExpr outer;              // slices of columns, each with results of its own
  SymExpr width;              // columns of a slice
  int64_t lanes = 1;          // V of the contract
  int64_t element_bytes = 2;  // of the widest operand, in memory
  int64_t operand_bytes = 2;  // of all operands that are there for every element
  int64_t reductions = 1;
  bool stores_elements = false;  // a result has an element for every element that is reduced
};

struct ColumnConfig {
  int64_t chunks = 1;    // of 8 columns, side by side in a block
  int64_t runs = 1;      // of lanes, in a block
  int64_t lanes = 1;     // of a run
  int64_t segments = 1;  // blocks that share the lanes of a tile: a cluster
  // All four are powers of two.

  /// Threads that a multiprocessor holds at least. Asked for this number, and no more, the compiler
  /// issues a thread's 8 rows of loads ahead of their sums (80 registers for 768, 128 for 512: 96
  /// and 64 KiB under way for two bytes an element); left to itself it saves registers for full
  /// multiprocessors, and issues few.
  int64_t resident_threads = 512;

  int64_t threads() const { return chunks * runs; }
  int64_t tile() const { return 8 * chunks; }  // columns
  /// Floats of shared memory for the sums that a block's warps hand over.
  int64_t handed() const { return tile() * runs / (chunks < 32 ? 32 / chunks : 1); }
};

/// nullopt: no configuration fits the device (threads, shared memory).
std::optional<ColumnConfig> schedule_columns(const ColumnProblem& problem,
                                             llvm::ArrayRef<Symbol> symbols,
                                             const DeviceDescription& device);

/// Tiles of columns in all slices, symbols at their upper bound.
double column_tiles(const ColumnProblem& problem, const ColumnConfig& config,
                    llvm::ArrayRef<Symbol> symbols);

}  // namespace sinter
