// The sizes that the kernel of `expert_linear` and its emitter share.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

constexpr int kExpertThreads = 256;
constexpr int kExpertWarpRows = 4;       // rows of a matrix that a warp multiplies together
constexpr int kExpertAheadBytes = 1024;  // of a row, prefetched before the kernel's wait
constexpr int kExpertBlockRows = kExpertThreads / 32 * kExpertWarpRows;

/// Classes of a block, of at most 8 units: its warps are dealt to the units.
SINTER_DEVICE constexpr int expert_block_classes(int units) {
  return kExpertThreads / 32 / units * kExpertWarpRows;
}

}  // namespace sinter
