// The order of a product's tiles in which the L2 cache keeps what neighbouring blocks read.
#pragma once

#include "kernels/tile/tiles/round_robin.cuh"
#include "kernels/tile/tiles/work_tile.cuh"

namespace sinter {

// Tiles of `tokens` tokens and `rows` of the matrix's `matrix_rows` rows. `together` tiles of
// tokens make a group, 0: all of them. Blocks that run at the same time compute the tiles of a
// group and of neighbouring rows of the matrix. The blocks of a cluster compute tiles that are
// neighbours in a group.
template <int tokens, int rows, int matrix_rows, int together, int cluster = 1>
class CachedTiles {
  static constexpr int kClusterRows = cluster * rows;
  static constexpr int kRowTiles = (matrix_rows + kClusterRows - 1) / kClusterRows;

 public:
  // `count`: the number of tokens, an int or a long long. The pointer is not used: GroupedTiles
  // takes the same arguments.
  template <typename Count>
  SINTER_DEVICE CachedTiles(const int*, Count count)
      : token_tiles_(static_cast<int>((count + tokens - 1) / tokens)),
        rank_(static_cast<int>(blockIdx.x) % cluster),
        tiles_(kRowTiles * token_tiles_, cluster) {}

  // As of GroupedTiles: there is one matrix.
  template <int steps>
  static SINTER_DEVICE int steps_of(const WorkTile&) {
    return steps;
  }
  static SINTER_DEVICE int first_matrix_row(const WorkTile& tile) { return tile.matrix_row; }
  template <typename Count>
  static SINTER_DEVICE Count end(const WorkTile&, Count count) {
    return count;
  }

  // The block's rank in its cluster.
  SINTER_DEVICE int rank() const { return rank_; }
  // Whether the block has a tile in this round.
  SINTER_DEVICE bool has(int round) const { return tiles_.has(round); }
  SINTER_DEVICE WorkTile tile(int round) const {
    const int tile = tiles_.tile(round);
    if constexpr (together == 0) return {tile % token_tiles_ * tokens, tile / token_tiles_ * rows};
    const int first = tile / (together * kRowTiles) * together;
    const int in_group = tile % (together * kRowTiles);
    const int left = token_tiles_ - first, of_group = left < together ? left : together;
    return {(first + in_group % of_group) * tokens,
            in_group / of_group * kClusterRows + rank_ * rows};
  }

 private:
  int token_tiles_, rank_;
  RoundRobinTiles tiles_;
};

}  // namespace sinter
