// Addresses of shared memory, as instructions take them.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

#ifdef __CUDACC_RTC__
using SharedAddress = unsigned;

SINTER_DEVICE SharedAddress shared_address(const void* p) {
  return static_cast<unsigned>(__cvta_generic_to_shared(p));
}
#else
using SharedAddress = math::u64;

SINTER_DEVICE SharedAddress shared_address(const void* p) {
  return reinterpret_cast<SharedAddress>(p);
}
#endif

}  // namespace sinter
