// The sizes that the kernel of a sort and its emitter share.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// Numbers that a block sorts.
constexpr int kSortedPerBlock = 2048;
/// Warps of a block: each counts the numbers of a part, in shared memory.
SINTER_DEVICE constexpr int sort_warps(int runs) { return runs <= 256 ? 32 : 8; }

}  // namespace sinter
