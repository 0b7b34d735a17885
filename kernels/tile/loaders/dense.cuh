// Loads a tile of an operand behind an accessor: from memory, or computed by a prologue.
#pragma once

#include "kernels/tile/epilogue/ports.cuh"
#include "kernels/tile/layout.h"

namespace sinter {

struct TileChunk {
  int row, chunk;
};
// The chunk that a thread loads in a round, of a tile of `chunks` chunks a row; the chunks of a
// round follow one another. Where a round is whole rows, a thread has the same chunk of each: the
// compiler does not see that by itself.
template <int chunks, int threads>
SINTER_DEVICE TileChunk tile_chunk(unsigned thread, int round) {
  if constexpr (threads % chunks == 0)
    return {static_cast<int>(thread / chunks) + round * (threads / chunks),
            static_cast<int>(thread % chunks)};
  const unsigned number = thread + static_cast<unsigned>(round * threads);
  return {static_cast<int>(number / chunks), static_cast<int>(number % chunks)};
}

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
  for (int round = 0; round < rounds; round += together) {
    uint4 words[together];
#pragma unroll
    for (int g = 0; g < together; ++g) {
      const TileChunk own = tile_chunk<chunks, threads>(thread, round + g);
      if (all % (together * threads) != 0 && own.row >= rows) break;
      float values[8] = {};
      read_port<width % 8 == 0>(values, operand, first(own.row) + 8 * own.chunk,
                                width - 8 * own.chunk);
      words[g] = narrow(static_cast<const T*>(nullptr), values);
    }
#pragma unroll
    for (int g = 0; g < together; ++g) {
      const TileChunk own = tile_chunk<chunks, threads>(thread, round + g);
      if (all % (together * threads) != 0 && own.row >= rows) break;
      *reinterpret_cast<uint4*>(tile + tile_offset(rows, padded, own.row, own.chunk)) = words[g];
    }
  }
}

}  // namespace sinter
