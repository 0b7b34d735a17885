// The items of a launch of tiled_attention: a tile of rows of a head is one. A launch with fewer
// blocks than items has as many as the device runs at a time, and each block takes several items.
//
// All blocks get about the same number of keys to read, and blocks read the same keys at the same
// time, so that the second-level cache keeps them. Tiles are listed by the keys that they see, most
// first. The first and the last tile of the list make a pair, the second and the last but one, and
// so on: all pairs of causal attention see about the same number of keys. Most items are assigned
// to the blocks as pairs, one head after the other. The rest, one to two pairs for each block, is
// listed tile by tile and assigned in rounds, every other round from the last block to the first.
#pragma once

#include "kernels/attention/attention_tiles.cuh"

namespace sinter {

template <typename Config>
class AttentionItems {
  static constexpr bool kDeals = Config::kWarpgroups;  // else a launch has a block for each item
  static constexpr int kMost = 512;  // tiles that are sorted; more are taken from the last on

 public:
  // Made by all threads of a block, with a barrier.
  SINTER_DEVICE AttentionItems(const AttentionOperands<typename Config::Element>& in,
                               unsigned char* shared)
      : in_(in),
        shared_(shared),
        tiles_(static_cast<int>((in.tokens + Config::kRows - 1) / Config::kRows)),
        blocks_(static_cast<int>(gridDim.x)),
        block_(static_cast<int>(blockIdx.x)),
        sorted_(tiles_ <= kMost && tiles_ * Config::kHeads > blocks_) {
    if constexpr (kDeals) {
      const int pairs = tiles_ / 2 * Config::kHeads;
      pairs_of_block_ = pairs < 2 * blocks_ ? 0 : pairs / blocks_ - 1;
      if (sorted_) sort();
    }
  }

  SINTER_DEVICE bool has(int round) const {
    if (!kDeals && round > 0) return false;
    return round < 2 * pairs_of_block_ || single(round) < singles();
  }
  SINTER_DEVICE AttentionBlock<Config> block(int round) const {
    const Item item = round < 2 * pairs_of_block_ ? of_pair(round) : of_single(single(round));
    return {in_, tile(item.place), item.head, shared_};
  }

 private:
  struct Item {
    int place, head;  // of the tile in the list
  };
  // Places in the list, one after the other, that the last `heads` heads have.
  struct Run {
    int places, heads;
  };

  SINTER_DEVICE Item of_pair(int round) const {
    const int half = tiles_ / 2, pair = round / 2 * blocks_ + block_;
    const int place = pair % half;
    return {round % 2 == 0 ? place : tiles_ - 1 - place, pair / half};
  }

  // How many items are not dealt out as pairs, and which of them the block has in a round.
  SINTER_DEVICE int singles() const {
    return tiles_ * Config::kHeads - 2 * pairs_of_block_ * blocks_;
  }
  SINTER_DEVICE int single(int round) const {
    const int r = round - 2 * pairs_of_block_;
    return r * blocks_ + (r % 2 == 0 ? block_ : blocks_ - 1 - block_);
  }
  SINTER_DEVICE Item of_single(int i) const {
    const int half = tiles_ / 2, dealt = pairs_of_block_ * blocks_;
    const int heads_dealt = dealt > 0 ? dealt / half : 0;  // all pairs of these
    const int pairs_dealt = dealt - heads_dealt * half;    // and these of the next head
    const int heads = Config::kHeads - heads_dealt;
    const Run runs[] = {{pairs_dealt, heads - 1},
                        {half - pairs_dealt, heads},
                        {tiles_ % 2, Config::kHeads},
                        {half - pairs_dealt, heads},
                        {pairs_dealt, heads - 1}};
    int place = 0;
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      const Run run = runs[k];
      const int count = run.places * run.heads;
      if (i < count) return {place + i / run.heads, Config::kHeads - run.heads + i % run.heads};
      i -= count;
      place += run.places;
    }
    return {};
  }

  SINTER_DEVICE int tile(int place) const {
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
  int pairs_of_block_ = 0;
  bool sorted_;
};

}  // namespace sinter
