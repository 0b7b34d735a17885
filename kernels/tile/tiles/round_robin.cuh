// Which work tiles of about the same cost a block of a persistent launch computes, one after the
// other. A launch with fewer blocks than work tiles has as many as the device runs at a time.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

// Block b of n computes the tiles b, b + n, b + 2n, ..., or
// cluster b of n clusters of `cluster` blocks.
class RoundRobinTiles {
 public:
  SINTER_DEVICE explicit RoundRobinTiles(int tiles, int cluster = 1)
      : tiles_(tiles),
        first_(static_cast<int>(blockIdx.x) / cluster),
        step_(static_cast<int>(gridDim.x) / cluster) {}

  SINTER_DEVICE bool has(int round) const { return tile(round) < tiles_; }
  SINTER_DEVICE int tile(int round) const { return first_ + round * step_; }

 private:
  int tiles_, first_, step_;
};

}  // namespace sinter
