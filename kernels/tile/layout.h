// Tiles of 16-bit elements in shared memory, as ldmatrix and wgmma read them; shared by schedules
// and kernels.
//
// A tile's rows are padded with zeros to a multiple of 16 elements and cut into panels of 64, 32 or
// 16 elements, the most that divide the row. A panel holds its part of all rows, one after the
// other. The 16-byte chunks of a panel are swizzled: chunk c of row r stands in place
// c xor (r * row_bytes / 128), so that the same chunk of 8 rows is in different banks. A tile
// begins at a multiple of 1024 bytes.
#pragma once

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

}  // namespace sinter
