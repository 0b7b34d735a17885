// The items of a launch of tiled_attention: a tile of rows of a head is one. A launch with fewer
// blocks than items has as many as the device runs at a time, and each block takes several items.
//
// Items are listed with those first whose rows see the most keys, and dealt out to and fro, so that
// all blocks get about as many keys. Heads are listed tile by tile; where the caches are larger
// than a second-level cache, one head after the other, so that blocks that run at a time read the
// same keys. (One H100, 8 texts of 2,048 tokens, 32 heads of 128: 704 us in the place of 924.)
#pragma once

#include "kernels/attention/attention_tiles.cuh"

namespace sinter {

template <typename Config>
class AttentionItems {
  static constexpr bool kDeals = Config::kWarpgroups;  // else a launch has a block for each item
  static constexpr int kMost = 512;  // tiles that are sorted; more are taken from the last on
  static constexpr long long kCacheBytes = 32 << 20;

 public:
  // Made by all threads of a block, with a barrier.
  SINTER_DEVICE AttentionItems(const AttentionOperands<typename Config::Element>& in,
                               unsigned char* shared)
      : in_(in),
        shared_(shared),
        tiles_(static_cast<int>((in.tokens + Config::kRows - 1) / Config::kRows)),
        blocks_(static_cast<int>(gridDim.x)),
        block_(static_cast<int>(blockIdx.x)),
        by_heads_(count() >= 4 * blocks_ &&
                  in.cache_rows * (Config::kKvHeads * (Config::kWidth + Config::kValueWidth) * 2) >
                      kCacheBytes),
        sorted_(tiles_ <= kMost && count() > blocks_) {
    if constexpr (kDeals)
      if (sorted_) sort();
  }

  SINTER_DEVICE bool has(int round) const {
    return (kDeals || round == 0) && item(round) < count();
  }
  SINTER_DEVICE AttentionBlock<Config> block(int round) const {
    return {in_, tile(round), head(round), shared_};
  }

 private:
  SINTER_DEVICE int head(int round) const {
    return by_heads_ ? item(round) / tiles_ : item(round) % Config::kHeads;
  }
  SINTER_DEVICE int tile(int round) const {
    const int place = by_heads_ ? item(round) % tiles_ : item(round) / Config::kHeads;
    if constexpr (kDeals)
      if (sorted_) return order().tiles[place];
    return tiles_ - 1 - place;
  }

  struct Order {
    unsigned short tiles[kMost];
    int keys[kMost];  // that a tile's last row sees
  };
  SINTER_DEVICE static Order& order() {
    __shared__ Order order;
    return order;
  }

  SINTER_DEVICE int count() const { return tiles_ * Config::kHeads; }
  SINTER_DEVICE int item(int round) const {
    return round * blocks_ + (round % 2 == 0 ? block_ : blocks_ - 1 - block_);
  }
  SINTER_DEVICE void sort() const {
    for (int tile = static_cast<int>(threadIdx.x); tile < tiles_; tile += Config::kThreads) {
      const long long end = (tile + 1ll) * Config::kRows;
      const long long token = (end < in_.tokens ? end : in_.tokens) - 1;
      order().keys[tile] = static_cast<int>(
          rows_of_cache(attention_range(in_.first[token], in_.last[token], Config::kWindow),
                        in_.cache_rows)
              .count);
    }
    __syncthreads();
    for (int tile = static_cast<int>(threadIdx.x); tile < tiles_; tile += Config::kThreads) {
      const int own = order().keys[tile];
      int place = 0;
      for (int other = 0; other < tiles_; ++other) {
        const int keys = order().keys[other];
        place += keys > own || (keys == own && other > tile);
      }
      order().tiles[place] = static_cast<unsigned short>(tile);
    }
    __syncthreads();
  }

  const AttentionOperands<typename Config::Element>& in_;
  unsigned char* shared_;
  int tiles_, blocks_, block_;
  bool by_heads_, sorted_;
};

}  // namespace sinter
