// Which work tiles that differ in cost a block of a persistent launch computes, one after the
// other.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// `heads` lists of the same `tiles`, sorted by cost, the costliest
// first. All blocks get about the same cost, and blocks compute tiles of the same head at the same
// time, so that the L2 cache keeps what they read.
//
// The first and the last tile of a list make a pair, the second and the last but one, and so on:
// where cost falls evenly along the list, all pairs cost the same. Most tiles are assigned to the
// blocks as pairs, one head after the other. The rest, one to two pairs for each block, is listed
// tile by tile and assigned in rounds, every other round from the last block to the first.
template <int heads>
class PairedTiles {
 public:
  struct Tile {
    int place, head;  // in the list of the head
  };

  // `paired`: false if each block computes one tile, the tile of its number.
  SINTER_DEVICE PairedTiles(int tiles, bool paired)
      : tiles_(tiles), blocks_(static_cast<int>(gridDim.x)), block_(static_cast<int>(blockIdx.x)) {
    const int pairs = tiles / 2 * heads;
    if (paired) pairs_of_block_ = pairs < 2 * blocks_ ? 0 : pairs / blocks_ - 1;
  }

  SINTER_DEVICE int count() const { return tiles_ * heads; }
  SINTER_DEVICE bool has(int round) const {
    return round < 2 * pairs_of_block_ || single(round) < singles();
  }
  SINTER_DEVICE Tile tile(int round) const {
    return round < 2 * pairs_of_block_ ? in_pair(round) : among_singles(single(round));
  }

 private:
  // Neighbouring places in the list, which the last `heads_left` heads have.
  struct Run {
    int places, heads_left;
  };

  SINTER_DEVICE Tile in_pair(int round) const {
    const int half = tiles_ / 2, pair = round / 2 * blocks_ + block_;
    const int place = pair % half;
    return {round % 2 == 0 ? place : tiles_ - 1 - place, pair / half};
  }

  // The number of tiles that are not assigned as pairs, and which of them the block has in a round.
  SINTER_DEVICE int singles() const { return tiles_ * heads - 2 * pairs_of_block_ * blocks_; }
  SINTER_DEVICE int single(int round) const {
    const int r = round - 2 * pairs_of_block_;
    return r * blocks_ + (r % 2 == 0 ? block_ : blocks_ - 1 - block_);
  }
  SINTER_DEVICE Tile among_singles(int i) const {
    const int half = tiles_ / 2, assigned = pairs_of_block_ * blocks_;
    const int heads_assigned = assigned > 0 ? assigned / half : 0;  // with all their pairs
    const int pairs_assigned = assigned - heads_assigned * half;    // of the next head
    const int heads_left = heads - heads_assigned;
    const Run runs[] = {{pairs_assigned, heads_left - 1},
                        {half - pairs_assigned, heads_left},
                        {tiles_ % 2, heads},
                        {half - pairs_assigned, heads_left},
                        {pairs_assigned, heads_left - 1}};
    int place = 0;
#pragma unroll
    for (int k = 0; k < 5; ++k) {
      const Run run = runs[k];
      const int count = run.places * run.heads_left;
      if (i < count)
        return {place + i / run.heads_left, heads - run.heads_left + i % run.heads_left};
      i -= count;
      place += run.places;
    }
    return {};
  }

  int tiles_, blocks_, block_;
  int pairs_of_block_ = 0;
};

}  // namespace sinter
