// Which tiles of a product's result a block computes, and in which order.
#pragma once

#include "kernels/tile/scheduler.cuh"

#if SINTER_HAS_WGMMA
namespace sinter {

// Config: as of TiledLinear (many.cuh). The blocks of a cluster compute tiles that are
// neighbours in a row. The clusters that run at the same time compute the tiles of 2,048 rows and
// of neighbouring columns: the L2 cache keeps their operands.
template <typename Config>
class ResultTiles {
  static constexpr int kClusterColumns = Config::kCluster * Config::kColumns;
  static constexpr int kColumnTiles =
      (Config::kResultColumns + kClusterColumns - 1) / kClusterColumns;
  static constexpr int kGroup = 2048 / Config::kRows;  // rows of tiles

 public:
  // The first row and column of a tile.
  struct Tile {
    int row, column;
  };

  // `rows`: of the result.
  explicit SINTER_DEVICE ResultTiles(long long rows)
      : row_tiles_(static_cast<int>((rows + Config::kRows - 1) / Config::kRows)),
        rank_(static_cast<int>(blockIdx.x) % Config::kCluster),
        tiles_(row_tiles_ * kColumnTiles, Config::kCluster) {}

  // The block's rank in its cluster.
  SINTER_DEVICE int rank() const { return rank_; }
  // Whether the block has a tile in this round.
  SINTER_DEVICE bool has(int round) const { return tiles_.has(round); }
  SINTER_DEVICE Tile tile(int round) const {
    const int tile = tiles_.tile(round), first = tile / (kGroup * kColumnTiles) * kGroup;
    const int in_group = tile % (kGroup * kColumnTiles);
    const int left = row_tiles_ - first, rows = left < kGroup ? left : kGroup;
    return {(first + in_group % rows) * Config::kRows,
            in_group / rows * kClusterColumns + rank_ * Config::kColumns};
  }

 private:
  int row_tiles_, rank_;
  RoundRobinTiles tiles_;
};

}  // namespace sinter
#endif
