// cvta.to.shared and %dynamic_smem_size.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

using SharedAddress = math::u64;

SINTER_DEVICE SharedAddress cvta_to_shared(const void* p) {
  return reinterpret_cast<SharedAddress>(p);
}
SINTER_DEVICE int dynamic_smem_size() {
  return static_cast<int>(sinter_shim_calls->context->shared_bytes);
}

}  // namespace sinter
