// bar.sync of some of a block's warps.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE void bar_sync(int id, int threads, SINTER_SHIM_SITE) {
  sinter_shim_calls->named_barrier(id, threads, {file, line});
}

}  // namespace sinter
