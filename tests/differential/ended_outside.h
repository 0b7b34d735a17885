// How a call of a random module may end without a result.
#pragma once

#include "ir/error.h"

namespace sinter {

/// The call computed a row number that names no row, which is an error after the call.
template <typename T>
bool ended_outside(const Result<T>& ran) {
  return !ran && ran.error().hint.starts_with("the module computes it");
}

}  // namespace sinter
