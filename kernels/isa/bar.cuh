// bar.sync: a barrier of some of a block's warps.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// A barrier of `threads` threads, whole warps. `id`, 1 .. 15, tells such barriers apart.
SINTER_DEVICE void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace sinter
