// No instruction: a value that the compiler knows nothing about from here on.
#pragma once

#include "ir/scalar_math.h"

namespace sinter {

SINTER_DEVICE void make_opaque(int& value) { asm("" : "+r"(value)); }
SINTER_DEVICE void make_opaque(unsigned& value) { asm("" : "+r"(value)); }
SINTER_DEVICE void make_opaque(long long& value) { asm("" : "+l"(value)); }
template <typename T>
SINTER_DEVICE void make_opaque(T*& address) {
  asm("" : "+l"(address));
}

}  // namespace sinter
