// Tiles of 16-bit elements in shared memory, as ldmatrix and wgmma read them; shared by schedules
// and kernels.
//
// A tile's rows are padded with zeros to a multiple of 16 elements and cut into panels of 64, 32 or
// 16 elements, the most that divide the row. A panel holds its part of all rows, one after the
// other. The 16-byte chunks of a panel are swizzled: chunk c of row r stands in place
// c xor (r * row_bytes / 128), so that the same chunk of 8 rows is in different banks. A tile
// begins at a multiple of 1024 bytes.
#pragma once

#include "ir/packed_codes.h"
#include "ir/scalar_math.h"

namespace sinter {

/// Elements of a row of a tile of `width` elements a row.
SINTER_DEVICE constexpr int tile_padded(int width) { return (width + 15) / 16 * 16; }

/// Bytes of a row of a panel: 128, 64 or 32.
SINTER_DEVICE constexpr int tile_panel_row(int padded) {
  return padded % 64 == 0 ? 128 : padded % 32 == 0 ? 64 : 32;
}
/// Bytes of a panel of `rows` rows.
SINTER_DEVICE constexpr int tile_panel(int rows, int padded) {
  return rows * tile_panel_row(padded);
}
/// Bytes of a tile.
SINTER_DEVICE constexpr int tile_bytes(int rows, int padded) { return rows * padded * 2; }

/// The offset in bytes of 8 elements of a row; `chunk` counts them.
SINTER_DEVICE constexpr int tile_offset(int rows, int padded, int row, int chunk) {
  const int bytes = tile_panel_row(padded), chunks = bytes / 16;
  const int place = chunk % chunks ^ row * bytes / 128 % chunks;
  return chunk / chunks * tile_panel(rows, padded) + row * bytes + 16 * place;
}

/// Bytes and elements of a row of the widest panel.
constexpr int kPanelRow = 128, kPanel = 64;

/// Whether rows are whole panels of kPanel elements. The dimensions of an operand's tensor map are
/// then the elements of a panel, rows, and panels, so that one box has several panels; else
/// elements, rows, and one.
SINTER_DEVICE constexpr bool has_whole_panels(long long length) { return length % kPanel == 0; }

/// The most rows of a matrix in a box of its tensor map, where they are rows of a warpgroup's
/// product.
constexpr int kMatrixBox = 64;
/// Rows of a matrix that are next to each other in a box: the rows that a lane's chunk has.
constexpr int kRowChunk = 8;

/// The rows of a box of `box` rows where an epilogue needs pairs of rows `stride` apart, the
/// classes of ir/colocation.h of two units: 8 first rows of pairs, then their partners, and so
/// on. So a lane of wgmma's result has the sums of both rows of a pair. A box begins at pair
/// `position` / 2.
template <int stride, int box>
struct PairedRows {
  static constexpr int kChunks = box / 2 / kRowChunk, kOfStride = stride / kRowChunk;
  /// Chunks of a run of pairs that a box has, and runs.
  static constexpr int kRun = kChunks < kOfStride ? kChunks : kOfStride;
  static_assert(stride % kRowChunk == 0 && kChunks % kRun == 0 && kOfStride % kRun == 0,
                "boxes have whole runs of pairs");

  /// The row of the matrix that is the first of a box's chunk of pairs.
  static SINTER_DEVICE constexpr int matrix_row(int position, int chunk) {
    const int pair = position / 2 + kRowChunk * chunk;
    return pair / stride * (2 * stride) + pair % stride;
  }
};

/// Stages of codes (loaders/codes.cuh): half of the lanes of a step, of each row two panels of the
/// codes of 8 lanes, then the second plane and the scales of the step. A panel is swizzled as
/// above.
constexpr int kCodesHalfBytes = 2 * kPanelRow;
/// Columns of a window of tokens, the unit in which they are loaded.
constexpr int kCodesWindow = 64;
/// The second plane, the scales and the zeros of a step of a row.
SINTER_DEVICE constexpr int codes_scale_bytes(const CodeLayout& layout) {
  return layout.step_bytes() - layout.upper(layout.step_rounds());
}
SINTER_DEVICE constexpr int codes_stage_bytes(const CodeLayout& layout, int rows) {
  return (rows * (kCodesHalfBytes + codes_scale_bytes(layout)) + 1023) / 1024 * 1024;
}
}  // namespace sinter
