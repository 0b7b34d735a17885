// The work tiles of a launch of tiled_attention: a tile of rows of a head. Tiles of rows are sorted
// by the number of keys that they see, most first, and assigned to the blocks by PairedTiles
// (kernels/tile/tiles/paired.cuh).
#pragma once

#include "kernels/tile/tiles/paired.cuh"
#include "kernels/tiled_attention/attention_tiles.cuh"

namespace sinter {

template <typename Config>
class AttentionTiles {
  static constexpr int kMaxSorted = 512;  // tiles of rows; more are taken from the last one on

 public:
  // Made by all threads of a block, with a barrier.
  SINTER_DEVICE AttentionTiles(const AttentionOperands<Config>& in, unsigned char* shared)
      : in_(in),
        shared_(shared),
        row_tiles_(row_tiles(in)),
        schedule_(row_tiles_, kPersistent),
        sorted_(row_tiles_ <= kMaxSorted && schedule_.count() > static_cast<int>(gridDim.x)) {
    if (kPersistent && sorted_) sort();
  }

  SINTER_DEVICE bool has(int round) const {
    if (!kPersistent && round > 0) return false;
    return schedule_.has(round);
  }
  SINTER_DEVICE AttentionBlock<Config> block(int round) const {
    const auto tile = schedule_.tile(round);
    return {in_, row_tile(tile.place), tile.head, shared_};
  }

 private:
  SINTER_DEVICE static int row_tiles(const AttentionOperands<Config>& in) {
    if constexpr (!Config::kSequences) return in.row_tiles_of_sequence();
    return static_cast<int>(in.sequences) * in.row_tiles_of_sequence();
  }
  static constexpr bool kPersistent = Config::kWarpgroups;  // else a block has one work tile

  SINTER_DEVICE int row_tile(int place) const {
    if constexpr (kPersistent)
      if (sorted_) return order().tiles[place];
    return row_tiles_ - 1 - place;
  }
  struct Order {
    unsigned short tiles[kMaxSorted];
    int keys[kMaxSorted];  // that a tile's last row sees
  };
  SINTER_DEVICE static Order& order() {
    __shared__ Order order;
    return order;
  }
  // The last token of a tile of rows, counted over all sequences.
  SINTER_DEVICE long long last_token(int tile) const {
    const AttentionRowTile place = row_tile_of(in_, tile);
    const long long end = (place.tile + 1ll) * Config::kRows;
    return place.sequence * in_.tokens + (end < in_.tokens ? end : in_.tokens) - 1;
  }
  SINTER_DEVICE void sort() const {
    for (int tile = static_cast<int>(threadIdx.x); tile < row_tiles_; tile += Config::kThreads) {
      const long long token = last_token(tile);
      order().keys[tile] = static_cast<int>(
          visible_keys<Config>(in_.first(token), in_.last(token), in_.cache_rows).count);
    }
    __syncthreads();
    for (int tile = static_cast<int>(threadIdx.x); tile < row_tiles_; tile += Config::kThreads) {
      const int own = order().keys[tile];
      int place = 0;
      for (int other = 0; other < row_tiles_; ++other) {
        const int keys = order().keys[other];
        place += keys > own || (keys == own && other > tile);
      }
      order().tiles[place] = static_cast<unsigned short>(tile);
    }
    __syncthreads();
  }

  const AttentionOperands<Config>& in_;
  unsigned char* shared_;
  int row_tiles_;
  PairedTiles<Config::kHeads> schedule_;
  bool sorted_;
};

}  // namespace sinter
