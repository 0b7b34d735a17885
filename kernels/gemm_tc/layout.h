// The layout on which schedule and kernels of tiled_linear agree.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// Bytes of a row of a panel of a tile (kernels/tile/layout.h): 64 elements.
constexpr int kFewTokensPanelRow = 128;

/// Registers of a thread of the warpgroup that copies, in the kernel of many tokens, and of the
/// `warpgroups` that multiply: the block begins with 65536 registers, or fewer by less than 8 a
/// thread.
constexpr int kTiledLinearCopyRegisters = 32;
SINTER_DEVICE constexpr int tiled_linear_registers(int warpgroups) {
  const int of_thread = 65536 / (128 * (warpgroups + 1)) / 8 * 8;
  const int left = (of_thread * (warpgroups + 1) - kTiledLinearCopyRegisters) / warpgroups / 8 * 8;
  return left < 240 ? left : 240;
}

/// The elements of a tile that cost as much as a row of its operands: 128 rows and columns are 5 %
/// slower than 256 rows.
constexpr int kTiledLinearElementsOfRow = 16;
/// The cost of the slowest of `clusters` clusters, in elements of its tiles: products and copied
/// rows. The blocks of a cluster compute `cluster` tiles that are neighbours in a row.
SINTER_DEVICE constexpr long long tiled_linear_cost(long long rows, long long columns,
                                                    long long tile_rows, long long tile_columns,
                                                    long long cluster, long long clusters) {
  const long long row_tiles = (rows + tile_rows - 1) / tile_rows;
  const long long of_row = (columns + tile_columns * cluster - 1) / (tile_columns * cluster);
  const long long rounds = (row_tiles * of_row + clusters - 1) / clusters;
  return rounds *
         (tile_rows * tile_columns + kTiledLinearElementsOfRow * (tile_rows + tile_columns));
}

constexpr int kMostFewTokensStages = 16;
/// Bytes behind the stages: a pipeline's barriers.
constexpr int kFewTokensBarrierBytes = 16 * kMostFewTokensStages;

/// The most rows of the matrix in a box of its tensor map, and of a warpgroup's product.
constexpr int kFewTokensBox = 64;

/// Rows of the matrix that are next to each other in a box: the rows that a lane's chunk has.
constexpr int kFewTokensChunk = 8;

/// The rows of a box of `box` rows where an epilogue needs pairs of rows `stride` apart, the
/// classes of ir/colocation.h of two units: 8 first rows of pairs, then their partners, and so
/// on. So a lane of wgmma's result has the sums of both rows of a pair. A box begins at pair
/// `position` / 2.
template <int stride, int box>
struct PairedRows {
  static constexpr int kChunks = box / 2 / kFewTokensChunk, kOfStride = stride / kFewTokensChunk;
  /// Chunks of a run of pairs that a box has, and runs.
  static constexpr int kRun = kChunks < kOfStride ? kChunks : kOfStride;
  static_assert(stride % kFewTokensChunk == 0 && kChunks % kRun == 0 && kOfStride % kRun == 0,
                "boxes have whole runs of pairs");

  /// The row of the matrix that is the first of a box's chunk of pairs.
  static SINTER_DEVICE constexpr int matrix_row(int position, int chunk) {
    const int pair = position / 2 + kFewTokensChunk * chunk;
    return pair / stride * (2 * stride) + pair % stride;
  }
};

/// Stages of `stage_bytes` that `shared_bytes` hold, and that have barriers.
SINTER_DEVICE constexpr int few_tokens_stages(int shared_bytes, int stage_bytes) {
  const int fit = shared_bytes / stage_bytes;
  return fit < kMostFewTokensStages ? fit : kMostFewTokensStages;
}

/// Whether rows are whole panels. The dimensions of an operand's tensor map are then the elements
/// of a panel, rows, and panels, so that one box has several panels; else elements, rows, and one.
SINTER_DEVICE constexpr bool few_tokens_panels(long long length) { return length % 64 == 0; }

}  // namespace sinter
