// Symbols for tests.
#pragma once

#include "ir/types.h"

namespace sinter {

inline Symbol host_symbol(std::string name, int64_t low, int64_t high, int64_t multiple = 1) {
  Symbol symbol;
  symbol.name = std::move(name);
  symbol.low = low;
  symbol.high = high;
  symbol.multiple = multiple;
  return symbol;
}

}  // namespace sinter
