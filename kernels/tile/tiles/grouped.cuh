// Tiles of products whose tokens are in runs: each run has a matrix of its own, or a result of its
// own, which is a sum over the run.
#pragma once

#include "kernels/tile/tiles/cached.cuh"

namespace sinter {

// Runs of `count` tokens: run g of `groups` has the tokens ends[g - 1] .. ends[g] - 1, from 0 for
// the first; an end that is out of order, or beyond `count`, is the nearest that is not. Tokens
// behind the last run are run `groups`. The runs are entered one after the other.
template <int groups>
class Runs {
 public:
  SINTER_DEVICE Runs(const int* ends, int count) : ends_(ends), count_(count) {}
  SINTER_DEVICE void enter_next() {
    ++group_;
    const int end = group_ < groups ? ends_[group_] : count_;
    begin_ = end_;
    end_ = end < begin_ ? begin_ : end > count_ ? count_ : end;
  }
  // The run that was entered last, and its tokens.
  SINTER_DEVICE int group() const { return group_; }
  SINTER_DEVICE int begin() const { return begin_; }
  SINTER_DEVICE int end() const { return end_; }

 private:
  const int* ends_;
  int count_, group_ = -1, begin_ = 0, end_ = 0;
};

// Runs with a matrix each. A tile has tokens of one run: at most one tile of tokens of a run is
// incomplete. Tokens behind the last run have no matrix. Neighbouring blocks read the same rows of
// a matrix.
//
// has() is asked for rounds in ascending order, and tile() for the last of them.
template <int tokens, int rows, int matrix_rows, int groups, int cluster = 1>
class GroupedTiles {
  static constexpr int kClusterRows = cluster * rows;
  static constexpr int kRowTiles = (matrix_rows + kClusterRows - 1) / kClusterRows;

 public:
  SINTER_DEVICE GroupedTiles(const int* ends, long long count)
      : runs_(ends, static_cast<int>(count)),
        rank_(static_cast<int>(blockIdx.x) % cluster),
        tiles_(0, cluster) {}

  // The steps of a tile's sums, of which a sum over the whole of a row has `steps`. No step: 0.
  template <int steps>
  static SINTER_DEVICE int steps_of(const WorkTile& tile) {
    return tile.group < groups ? steps : 0;
  }
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
      if (runs_.group() == groups) return false;
      first_ += token_tiles_ * kRowTiles;
      runs_.enter_next();
      token_tiles_ = (runs_.end() - runs_.begin() + tokens - 1) / tokens;
    }
    return true;
  }
  SINTER_DEVICE WorkTile tile(int round) const {
    const int tile = tiles_.tile(round) - first_;
    return {runs_.begin() + tile % token_tiles_ * tokens,
            tile / token_tiles_ * kClusterRows + rank_ * rows, runs_.group(), runs_.end()};
  }

 private:
  Runs<groups> runs_;
  int rank_;
  RoundRobinTiles tiles_;
  // The tiles of tokens of the last tile's run, and the number of the run's first tile.
  int token_tiles_ = 0, first_ = 0;
};

// Runs with a result each, of `result_rows` rows and `columns` columns, whose elements are sums
// over the run's tokens in steps of `depth`. Neighbouring blocks read the same columns.
//
// has() and tile() as of GroupedTiles.
template <int rows, int tile_columns, int result_rows, int columns, int groups, int depth>
class SummedRunTiles {
  static constexpr int kRowTiles = (result_rows + rows - 1) / rows;
  static constexpr int kTiles = kRowTiles * ((columns + tile_columns - 1) / tile_columns);

 public:
  SINTER_DEVICE SummedRunTiles(const int* ends, long long count)
      : runs_(ends, static_cast<int>(count)), tiles_(groups * kTiles) {}

  template <int>
  static SINTER_DEVICE int steps_of(const WorkTile& tile) {
    return (tile.last - tile.first + depth - 1) / depth;
  }
  static SINTER_DEVICE int first_matrix_row(const WorkTile& tile) { return tile.matrix_row; }
  // The tile's first row in the result of its run.
  static SINTER_DEVICE int first_row(const WorkTile& tile) {
    return tile.token - tile.group * result_rows;
  }
  template <typename Count>
  static SINTER_DEVICE Count end(const WorkTile& tile, Count) {
    return tile.end;
  }

  static SINTER_DEVICE int rank() { return 0; }
  SINTER_DEVICE bool has(int round) {
    if (!tiles_.has(round)) return false;
    while (runs_.group() < tiles_.tile(round) / kTiles) runs_.enter_next();
    return true;
  }
  SINTER_DEVICE WorkTile tile(int round) const {
    const int group = runs_.group(), tile = tiles_.tile(round) % kTiles;
    return {group * result_rows + tile % kRowTiles * rows,
            tile / kRowTiles * tile_columns,
            group,
            (group + 1) * result_rows,
            runs_.begin(),
            runs_.end()};
  }

 private:
  Runs<groups> runs_;
  RoundRobinTiles tiles_;
};

// The tiles of a product, whose tokens are in `groups` runs; 0: they have one matrix.
// `summed_rows`: of the result of a run that is summed in steps of `depth`; 0: it is not.
template <int tokens, int rows, int matrix_rows, int groups, int together, int cluster = 1,
          int summed_rows = 0, int depth = 0>
struct ProductTiles {
  using Type = SummedRunTiles<tokens, rows, summed_rows, matrix_rows, groups, depth>;
};
template <int tokens, int rows, int matrix_rows, int groups, int together, int cluster, int depth>
struct ProductTiles<tokens, rows, matrix_rows, groups, together, cluster, 0, depth> {
  using Type = GroupedTiles<tokens, rows, matrix_rows, groups, cluster>;
};
template <int tokens, int rows, int matrix_rows, int together, int cluster, int depth>
struct ProductTiles<tokens, rows, matrix_rows, 0, together, cluster, 0, depth> {
  using Type = CachedTiles<tokens, rows, matrix_rows, together, cluster>;
};

}  // namespace sinter
