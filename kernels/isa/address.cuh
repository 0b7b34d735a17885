// cvta.to.shared and the special register %dynamic_smem_size.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

/// An address of the block's shared memory, as instructions take it.
using SharedAddress = unsigned;

SINTER_DEVICE SharedAddress cvta_to_shared(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}

/// Bytes of dynamic shared memory that the launch gave to the block.
SINTER_DEVICE int dynamic_smem_size() {
  int bytes;
  asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
  return bytes;
}

}  // namespace sinter
