// Tiles of tokens in runs, each of which has a matrix of its own.
#pragma once

#include "kernels/tile/tiles/cached.cuh"

namespace sinter {

// Run g of `groups` has the tokens ends[g - 1] .. ends[g] - 1, from 0 for the first; an end that is
// out of order, or beyond `count`, is the nearest that is not. A tile has tokens of one run: at
// most one tile of tokens of a run is incomplete. Tokens behind the last run are run `groups`,
// which has no matrix. Neighbouring blocks read the same rows of a matrix.
//
// has() is asked for rounds in ascending order, and tile() for the last of them.
template <int tokens, int rows, int matrix_rows, int groups, int cluster = 1>
class GroupedTiles {
  static constexpr int kClusterRows = cluster * rows;
  static constexpr int kRowTiles = (matrix_rows + kClusterRows - 1) / kClusterRows;

 public:
  SINTER_DEVICE GroupedTiles(const int* ends, long long count)
      : ends_(ends),
        count_(static_cast<int>(count)),
        rank_(static_cast<int>(blockIdx.x) % cluster),
        tiles_(0, cluster) {}

  // Whether a tile's result is a product; else it is 0.
  static SINTER_DEVICE bool has_matrix(const WorkTile& tile) { return tile.group < groups; }
  // The tile's first row of the matrix among the rows of all matrices.
  static SINTER_DEVICE int first_matrix_row(const WorkTile& tile) {
    return tile.group * matrix_rows + tile.matrix_row;
  }
  // The first token behind those that the tile may have; `count`: of all tokens.
  template <typename Count>
  static SINTER_DEVICE Count end(const WorkTile& tile, Count) {
    return tile.end;
  }

  // The block's rank in its cluster.
  SINTER_DEVICE int rank() const { return rank_; }
  SINTER_DEVICE bool has(int round) {
    const int tile = tiles_.tile(round);
    while (tile >= first_ + token_tiles_ * kRowTiles) {
      if (group_ == groups) return false;
      first_ += token_tiles_ * kRowTiles;
      enter(group_ + 1);
    }
    return true;
  }
  SINTER_DEVICE WorkTile tile(int round) const {
    const int tile = tiles_.tile(round) - first_;
    return {begin_ + tile % token_tiles_ * tokens,
            tile / token_tiles_ * kClusterRows + rank_ * rows, group_, end_};
  }

 private:
  SINTER_DEVICE void enter(int group) {
    const int end = group < groups ? ends_[group] : count_;
    group_ = group;
    begin_ = end_;
    end_ = end < begin_ ? begin_ : end > count_ ? count_ : end;
    token_tiles_ = (end_ - begin_ + tokens - 1) / tokens;
  }

  const int* ends_;
  int count_, rank_;
  RoundRobinTiles tiles_;
  // The run that the last tile is of: its tokens, their tiles, and its first tile's number.
  int group_ = -1, begin_ = 0, end_ = 0, token_tiles_ = 0, first_ = 0;
};

// The tiles of a product, whose tokens are in `groups` runs; 0: they have one matrix.
template <int tokens, int rows, int matrix_rows, int groups, int together, int cluster = 1>
struct ProductTiles {
  using Type = GroupedTiles<tokens, rows, matrix_rows, groups, cluster>;
};
template <int tokens, int rows, int matrix_rows, int together, int cluster>
struct ProductTiles<tokens, rows, matrix_rows, 0, together, cluster> {
  using Type = CachedTiles<tokens, rows, matrix_rows, together, cluster>;
};

}  // namespace sinter
