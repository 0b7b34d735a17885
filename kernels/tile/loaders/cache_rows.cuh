// Loads a tile of rows of a matrix in memory by cp.async, zeros for rows that are not wanted.
#pragma once

#include "kernels/isa/cp_async.cuh"
#include "kernels/tile/layout.h"

namespace sinter {

// The rows low .. high of a matrix; none if high < low.
struct RowRange {
  int low, high;
};

// Tile `number` of a matrix, its rows number * rows and those after it, with zeros for rows outside
// of `range`, by `threads` threads of which this is number `thread`; each has the same chunk of
// every (threads / chunks)th row. `from`: row 0; `stride`: elements from a row to the next.
// `aligned`: rows begin at multiples of 8 elements. Copies are made at once where that, or a width
// that is no multiple of 8, rules out cp.async. `unrolls`: tiles whose rows are all wanted have
// text of their own.
template <int rows, int width, int threads, bool aligned, bool unrolls = true, typename T>
SINTER_DEVICE void load_cache_rows(unsigned char* tile, const T* from, long long stride, int number,
                                   const RowRange& range, int thread) {
  const int first = number * rows;
  constexpr int padded = tile_padded(width), chunks = padded / 8, step = threads / chunks;
  const int chunk = thread % chunks, row0 = thread / chunks;
  if (row0 >= step) return;
  const auto place = [&](int row) -> uint4& {
    return *reinterpret_cast<uint4*>(tile + tile_offset(rows, padded, row, chunk));
  };
  const T* const own = from + (first + row0) * stride + 8 * chunk;
  if (unrolls && aligned && width % 8 == 0 && first >= range.low &&
      first + (rows - 1) <= range.high) {
    const bool inside = width == padded || 8 * chunk < width;  // else zeros
#pragma unroll
    for (int row = 0; row < rows; row += step)
      if (row + step <= rows || row + row0 < rows)
        cp_async(&place(row + row0), inside ? own + row * stride : from, inside);
    return;
  }
#pragma unroll 1
  for (int row = 0; row + row0 < rows; row += step) {
    const int own_row = first + row0 + row;
    const bool wanted = own_row >= range.low && own_row <= range.high;
    uint4& out = place(row + row0);
    if constexpr (aligned && width % 8 == 0) {
      const bool present = wanted && 8 * chunk < width;
      cp_async(&out, present ? own + row * stride : from, present);
    } else {
      unsigned words[4] = {};
#pragma unroll
      for (int e = 0; e < 8; ++e)
        if (wanted && 8 * chunk + e < width)
          words[e / 2] |= static_cast<unsigned>(own[row * stride + e].bits) << 16 * (e % 2);
      out = make_uint4(words[0], words[1], words[2], words[3]);
    }
  }
}

}  // namespace sinter
