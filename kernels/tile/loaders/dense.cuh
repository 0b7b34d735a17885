// Loads a tile of an operand behind an accessor: from memory, or computed by a prologue.
#pragma once

#include "kernels/tile/layout.h"
#include "kernels/tile/ports.cuh"

namespace sinter {

// A tile of `rows` rows of `width` elements, by `threads` threads of which this is number `thread`.
// `first(row)`: the first element of a row, in the operand's elements.
template <typename T, int rows, int width, int threads, typename Operand, typename First>
SINTER_DEVICE void load_dense(unsigned char* tile, const Operand& operand, First first,
                              int thread) {
  constexpr int padded = tile_padded(width), chunks = padded / 8, all = rows * chunks;
  // Chunks that a thread loads before it stores any of them: 4, 5 or 3 where that divides its
  // rounds.
  constexpr int rounds = (all + threads - 1) / threads;
  constexpr int together = rounds % 4 == 0   ? 4
                           : rounds % 5 == 0 ? 5
                           : rounds % 3 == 0 ? 3
                           : rounds == 1     ? 1
                                             : 2;
#pragma unroll 1
  for (int begin = thread; begin < all; begin += together * threads) {
    uint4 words[together];
#pragma unroll
    for (int g = 0; g < together; ++g) {
      const unsigned i = static_cast<unsigned>(begin + g * threads);
      const int row = static_cast<int>(i / chunks), chunk = static_cast<int>(i % chunks);
      if (all % (together * threads) != 0 && i >= all) break;
      float values[8] = {};
      read_port<width % 8 == 0>(values, operand, first(row) + 8 * chunk, width - 8 * chunk);
      words[g] = narrow(static_cast<const T*>(nullptr), values);
    }
#pragma unroll
    for (int g = 0; g < together; ++g) {
      const unsigned i = static_cast<unsigned>(begin + g * threads);
      if (all % (together * threads) != 0 && i >= all) break;
      *reinterpret_cast<uint4*>(tile + tile_offset(rows, padded, static_cast<int>(i / chunks),
                                                   static_cast<int>(i % chunks))) = words[g];
    }
  }
}

}  // namespace sinter
